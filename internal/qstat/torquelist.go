package qstat

import (
	"fmt"
	"io"
	"strings"
)

// TorqueList is the other list of Torque, that of -a, -i, -r, -u, -n, -s, -G, -M and -R: the columns of OpenPBS's, other widths, and times with their seconds.
type TorqueList struct {
	Alternate
}

const torqueHead = "\n                                                                                  Req'd       Req'd       Elap\n" +
	"Job ID                  Username    Queue    Jobname          SessID  NDS   TSK   Memory      Time    S   Time\n" +
	"----------------------- ----------- -------- ---------------- ------ ----- ------ --------- --------- - ---------\n"

// Print adds a job.
func (t *TorqueList) Print(r *Row) error {
	if !t.open {
		t.open = true
		if _, err := fmt.Fprintf(t.W, "\n%s: %s", t.Server, torqueHead); err != nil {
			return err
		}
	}
	or := func(text string) string {
		if text == "" {
			return none
		}
		return text
	}
	wanted, spent := r.WantWall, r.Wall
	if r.WantCPU != "" {
		wanted, spent = r.WantCPU, r.CPU
	}
	if strings.Contains("QCH", or(r.State)) {
		spent = ""
	}
	_, err := fmt.Fprintf(t.W, "%-23s %-11.11s %-8.8s %-16.16s %6.6s %5.5s %6.6s %9.9s %9.9s %1.1s %9.9s", r.ID, r.User, r.Queue, r.Name,
		or(r.Session), or(r.Nodes), or(r.Tasks), or(t.size(r.Memory)), or(wanted), or(r.State), or(spent))
	if err == nil && !t.Behind {
		_, err = io.WriteString(t.W, "\n")
	}
	if err == nil && t.Hosts {
		if t.Behind {
			_, err = io.WriteString(t.W, "   ")
		}
		if err == nil {
			err = t.hosts(r.Host)
		}
	}
	if err == nil && t.Comments && r.Comment != "" {
		_, err = fmt.Fprintf(t.W, "   %s\n", Visible(r.Comment))
	} else if err == nil && t.Behind && !t.Hosts {
		_, err = io.WriteString(t.W, "\n")
	}
	return err
}

// Close ends the list.
func (t *TorqueList) Close() error { return nil }
