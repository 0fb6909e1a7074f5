package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/internal/authority"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/schedd/dbfile"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
)

// repairedFile is what is damaged in one file of a node, and what was or would be done.
type repairedFile struct {
	File    string   `json:"file"`
	Damaged []string `json:"damaged"`
	Actions []string `json:"actions"`
	KeptAs  string   `json:"kept_as,omitempty"`
}

// repairFiles takes out of this node's files what is damaged, or says what it would take out.
func (c *call) repairFiles() error {
	n, err := c.node()
	if err != nil {
		return err
	}
	dry := c.flag("dry-run")
	files, err := repairNode(n, c.now(), dry)
	if c.json() {
		if jerr := printJSON(c.stdout, document{"files": files, "ok": err == nil && (len(files) == 0 || !dry)}); jerr != nil {
			return jerr
		}
	} else {
		c.printRepairs(files, dry)
	}
	if err == nil && dry && len(files) > 0 {
		return exit(1)
	}
	return err
}

// repairNode repairs file after file; those before an error are repaired.
func repairNode(n *config.Node, now time.Time, dry bool) (files []repairedFile, err error) {
	files = []repairedFile{}
	type repair func() (*dbfile.Report, error)
	var all []repair
	if n.Schedd != nil {
		dir := filepath.Join(n.Dir, "schedd")
		all = append(all, func() (*dbfile.Report, error) { return journal.Repair(dir, n.Name, now, dry) },
			func() (*dbfile.Report, error) { return history.Repair(dir, n.Name, now, dry) })
	}
	if n.Authority != nil {
		all = append(all, func() (*dbfile.Report, error) { return authority.Repair(n.Authority.Dir, n.Name, now, dry) })
	}
	if n.Negotiator != nil {
		all = append(all, func() (*dbfile.Report, error) { return negotiator.Repair(n, daemon.Logger("negotiator"), now, dry) })
	}
	for _, repair := range all {
		r, err := repair()
		if err != nil {
			return files, err
		}
		if r != nil {
			files = append(files, repairedFile{r.Path, r.Damages, r.Actions, r.Aside})
		}
	}
	return files, nil
}

func (c *call) printRepairs(files []repairedFile, dry bool) {
	if len(files) == 0 {
		fmt.Fprintln(c.stdout, "Nothing is damaged.")
		return
	}
	for _, f := range files {
		fmt.Fprintf(c.stdout, "%s is damaged:\n", f.File)
		for _, d := range f.Damaged {
			fmt.Fprintf(c.stdout, "  %s\n", printable(d))
		}
		verb := "Repaired"
		if dry {
			verb = "roost doctor --repair would do this"
		}
		fmt.Fprintf(c.stdout, "%s:\n", verb)
		for _, a := range f.Actions {
			fmt.Fprintf(c.stdout, "  %s\n", printable(a))
		}
		if f.KeptAs != "" {
			fmt.Fprintf(c.stdout, "The damaged file is kept as %s\n", f.KeptAs)
		}
	}
}
