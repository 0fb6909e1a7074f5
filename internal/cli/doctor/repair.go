package doctor

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
)

// repairedFile is what is damaged in one file of a node, and what was or would be done.
type repairedFile struct {
	File    string   `json:"file"`
	Damaged []string `json:"damaged"`
	Actions []string `json:"actions"`
	SavedAs string   `json:"kept_as,omitempty"`
}

// repairFiles takes out of this node's files what is damaged, or says what it would take
// out.
func repairFiles(c *frame.Invocation) error {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	dry := c.Flag("dry-run")
	files, err := repairNode(n, c.Now(), dry)
	if c.WantsJSON() {
		if jerr := frame.PrintJSON(c.Stdout, frame.JSONDocument{"files": files,
			"ok": err == nil && (len(files) == 0 || !dry)}); jerr != nil {
			return jerr
		}
	} else {
		printRepairs(c, files, dry)
	}
	if err == nil && dry && len(files) > 0 {
		return frame.ExitError(1)
	}
	return err
}

// repairNode repairs file after file; those before an error are repaired.
func repairNode(n *config.Node, now time.Time, dry bool) (files []repairedFile, err error) {
	files = []repairedFile{}
	type repair func() (*boltfile.RepairReport, error)
	var all []repair
	if n.Schedd != nil {
		dir := filepath.Join(n.Dir, "schedd")
		all = append(all, func() (*boltfile.RepairReport, error) { return journal.Repair(dir, n.Name, now, dry) },
			func() (*boltfile.RepairReport, error) { return history.Repair(dir, n.Name, now, dry) })
	}
	if n.Authority != nil {
		all = append(all, func() (*boltfile.RepairReport, error) {
			return ca.Repair(n.Authority.Dir, n.Name, now, dry)
		})
	}
	if n.Negotiator != nil {
		all = append(all, func() (*boltfile.RepairReport, error) {
			return negotiator.Repair(n, daemon.Logger("negotiator"), now, dry)
		})
	}
	for _, repair := range all {
		r, err := repair()
		if err != nil {
			return files, err
		}
		if r != nil {
			files = append(files, repairedFile{r.Path, r.Damages, r.Actions, r.DamagedPath})
		}
	}
	return files, nil
}

func printRepairs(c *frame.Invocation, files []repairedFile, dry bool) {
	if len(files) == 0 {
		fmt.Fprintln(c.Stdout, "Nothing is damaged.")
		return
	}
	for _, f := range files {
		fmt.Fprintf(c.Stdout, "%s is damaged:\n", f.File)
		for _, d := range f.Damaged {
			fmt.Fprintf(c.Stdout, "  %s\n", document.PrintableText(d))
		}
		verb := "Repaired"
		if dry {
			verb = "roost doctor --repair would do this"
		}
		fmt.Fprintf(c.Stdout, "%s:\n", verb)
		for _, a := range f.Actions {
			fmt.Fprintf(c.Stdout, "  %s\n", document.PrintableText(a))
		}
		if f.SavedAs != "" {
			fmt.Fprintf(c.Stdout, "The damaged file is kept as %s\n", f.SavedAs)
		}
	}
}
