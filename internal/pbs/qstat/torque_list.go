package qstat

import (
	"fmt"
	"io"
	"strings"
)

// TorqueList is Torque's alternate list, of -a, -i, -r, -u, -n, -s, -G, -M and -R. It has
// OpenPBS's columns with other widths, and times with seconds.
type TorqueList struct {
	AlternateList
}

const torqueHead = "\n                                                                                  Req'd       " +
	"Req'd       Elap\n" +
	"Job ID                  Username    Queue    Jobname          SessID  NDS   TSK   Memory      Time    S   Time\n" +
	"----------------------- ----------- -------- ---------------- ------ ----- ------ --------- --------- " +
	"- ---------\n"

// Print prints a job.
func (t *TorqueList) Print(r *JobRow) error {
	if !t.headPrinted {
		t.headPrinted = true
		if _, err := fmt.Fprintf(t.Writer, "\n%s: %s", t.Server, torqueHead); err != nil {
			return err
		}
	}
	or := func(text string) string {
		if text == "" {
			return noValue
		}
		return text
	}
	wanted, spent := r.RequestedWall, r.Wall
	if r.RequestedCPU != "" {
		wanted, spent = r.RequestedCPU, r.CPU
	}
	if strings.Contains("QCH", or(r.State)) {
		spent = ""
	}
	_, err := fmt.Fprintf(t.Writer, "%-23s %-11.11s %-8.8s %-16.16s %6.6s %5.5s %6.6s %9.9s %9.9s %1.1s %9.9s", r.ID,
		r.User, r.Queue, r.Name,
		or(r.Session), or(r.Nodes), or(r.Tasks), or(t.sizeText(r.Memory)), or(wanted), or(r.State), or(spent))
	if err == nil && !t.SameLine {
		_, err = io.WriteString(t.Writer, "\n")
	}
	if err == nil && t.Hosts {
		if t.SameLine {
			_, err = io.WriteString(t.Writer, "   ")
		}
		if err == nil {
			err = t.printHosts(r.Host)
		}
	}
	if err == nil && t.Comments && r.Comment != "" {
		_, err = fmt.Fprintf(t.Writer, "   %s\n", VisibleText(r.Comment))
	} else if err == nil && t.SameLine && !t.Hosts {
		_, err = io.WriteString(t.Writer, "\n")
	}
	return err
}

// Close ends the list.
func (t *TorqueList) Close() error { return nil }
