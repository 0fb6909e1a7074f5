package jobs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
)

// pilotsTimeout bounds the question to the user's provisioner.
const pilotsTimeout = time.Second

// pilotsDocument is what roost why needs of the document of roost pilots list.
type pilotsDocument struct {
	Providers []struct {
		Name        string
		Allocations []struct {
			Key, ID, State, For string
			Asked               int64 // unix seconds
		}
	}
	Unmet []struct{ Job, Provider, Reason string }
}

// pilotLines says what the user's provisioner does for a job that waits. Nothing is known
// where none runs.
func pilotLines(c *frame.Invocation, job string) []string {
	dir, err := pooldir.PilotsDir(c.StringFlag("dir"), c.Getenv)
	if err != nil {
		return nil
	}
	conn, err := localrpc.DialSocket(filepath.Join(dir, pooldir.PilotsSocket))
	if err != nil {
		return nil
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(pilotsTimeout))
	var answer struct{ Document pilotsDocument }
	if json.NewEncoder(conn).Encode(map[string]string{"verb": "list"}) != nil ||
		json.NewDecoder(conn).Decode(&answer) != nil {
		return nil
	}
	return answer.Document.linesFor(job, func(seconds int64) string {
		return c.AgoText(time.Unix(seconds, 0).UnixNano())
	})
}

// linesFor returns the sentences about a job.
func (d *pilotsDocument) linesFor(job string, ago func(seconds int64) string) (lines []string) {
	for _, p := range d.Providers {
		for _, a := range p.Allocations {
			if a.State == "ended" || !strings.Contains(a.For+" ", "job "+job+" ") {
				continue
			}
			id := ""
			if a.ID != "" {
				id = ", " + a.ID + " there"
			}
			lines = append(lines, document.PrintableText(fmt.Sprintf(
				"a pilot of %s was asked for it %s: allocation %s%s is %s", p.Name, ago(a.Asked), a.Key, id, a.State)))
		}
	}
	for _, u := range d.Unmet {
		if u.Job == job {
			lines = append(lines, document.PrintableText(fmt.Sprintf("no pilot of %s is asked for it: %s", u.Provider,
				u.Reason)))
		}
	}
	return lines
}
