// Package accountingstore is the commands that open the accountant's store themselves,
// while no accountant does. They are in the program roost-accountant, because of the
// libraries of its databases.
package accountingstore

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/store"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
)

// Command returns roost accounting, which moves the store of an accountant.
func Command() *frame.Command {
	return &frame.Command{
		Name: "accounting", Group: frame.GroupAdmin, Summary: "copy the accounts of a pool to another database",
		Synopsis: "copy", MaxOperands: -1, Branches: branches,
		Run: func(c *frame.Invocation) error { return c.RunSubcommand(branches()) },
		Description: "Copies the accountant's store from the SQLite files in its directory into the PostgreSQL " +
			"database that the node file names, while the accountant is stopped. Each row is read back and " +
			"compared. All of it is one transaction: after an error the database is as empty as before. " +
			"With --back it copies the database into files of a directory that has none.",
		Examples: []frame.Example{
			{Line: "roost accounting copy", Description: "to the database of the accountant's block of the node file"},
			{Line: "roost accounting copy --json", Description: "with the digest of each month, for programs"},
			{Line: "roost accounting copy --back", Description: "from the database into the accountant's directory"},
		},
		Flags: []ucli.Flag{nodeaccess.ConfigFlag(), frame.JSONFlag(), &ucli.BoolFlag{Name: "back",
			Usage: "copy the database into SQLite files instead"}},
	}
}

func branches() []frame.Subcommand {
	return []frame.Subcommand{{Name: "copy", Summary: "copy SQLite files into a PostgreSQL database, or back",
		Flags: []string{"config", "back"}, Run: copyStore}}
}

// part is a part of the store in the document of the command.
type part struct {
	Month string `json:"month,omitempty"` // of the jobs; empty: what belongs to no month
	store.CopiedPart
}

func copyStore(c *frame.Invocation, args []string) error {
	if len(args) > 0 {
		return frame.UsageErrorf("roost accounting copy: it takes no operands, and got %q", args[0])
	}
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	a := n.Accountant
	if a == nil || a.Database == "" {
		return frame.WithHint(frame.KindErrorf(roost.BadConfig,
			"node %s: its node file has no accountant block that names a database", n.Name),
			"add database = \"postgres://roost@HOST/DATABASE\" to the accountant block; see roost-node(5)")
	}
	parts, copyParts := []part{}, store.Copy
	if c.Flag("back") {
		copyParts = store.CopyBack
	}
	err = copyParts(c.Context, store.Options{Directory: a.Dir, Postgres: a.Database}, func(p store.CopiedPart) {
		one := part{CopiedPart: p}
		if p.Month != 0 {
			one.Month = p.Month.String()
		}
		if parts = append(parts, one); !c.WantsJSON() {
			name := one.Month
			if name == "" {
				name = "sums, charges, names"
			}
			fmt.Fprintf(c.Stdout, "%-20s  %10d rows  %.16s\n", name, p.Rows, p.Digest)
		}
	})
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"parts": parts})
	}
	if c.Flag("back") {
		fmt.Fprintf(c.Stdout, "copied to files in %s; remove database from the node file for the accountant to use "+
			"them; the database is as before\n", a.Dir)
		return nil
	}
	fmt.Fprintf(c.Stdout, "copied to the database of the node file; the files in %s are as before\n", a.Dir)
	return nil
}
