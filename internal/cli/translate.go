package cli

import (
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/spell"
	"github.com/roost-batch/roost/internal/translate"
)

func translateCommand() *command {
	return &command{
		name: "translate", group: groupRun, brief: "turn a script of PBS, Slurm or HTCondor into a job file", args: "FILE", least: 1, most: 1, wants: "a script, or - for standard input", do: translateFile,
		about: "Reads a script with #PBS or #SBATCH lines, or a submit description of HTCondor, and prints a job file in HCL that does the same. Comments in it tell what could not be carried over, and what to do instead. How many there are is said on standard error.",
		examples: []example{
			{"roost translate train.sbatch -o train.hcl", "then look at it, and: roost submit train.hcl"},
			{"roost translate run.pbs | roost submit -", "submit what a PBS script says"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this `FILE`, which must not be there yet"},
			&ucli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "write over the file"},
			&ucli.StringFlag{Name: "from", Usage: "what it is written for, `pbs|torque|slurm|condor`, where that is not to be guessed"},
		},
	}
}

func translateFile(c *call) error {
	file, from := c.args[0], c.text("from")
	if err := dialect(from); err != nil {
		return err
	}
	src, err := c.readInput(file)
	if err != nil {
		return err
	}
	shown := printable(file)
	if file == "-" {
		shown, file = "standard input", ""
	}
	r, err := translate.File(src, translate.Options{Name: file, From: translate.Dialect(from)})
	if errors.Is(err, translate.ErrNothing) {
		fmt.Fprintf(c.stderr, "%s %s: nothing to translate: %v\n", c.err.paint(red, "roost:"), shown, err)
		return exit(1)
	}
	if err != nil {
		return problem(roost.Invalid, "%s: %v", shown, err)
	}
	if out := c.text("output"); out != "" {
		if err := c.writeNew(out, r.Text); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(c.stdout, r.Text); err != nil {
		return problem(roost.NoOutput, "%v", err)
	}
	var said []string
	if r.Lost > 0 {
		said = append(said, plural(r.Lost, "thing")+" not carried over")
	}
	if r.Differs > 0 {
		said = append(said, differing(r.Differs)+" here")
	}
	if len(said) > 0 {
		fmt.Fprintf(c.stderr, "%s: %s: see the comments\n", shown, strings.Join(said, ", "))
	}
	return nil
}

func differing(n int) string {
	if n == 1 {
		return "1 is different"
	}
	return fmt.Sprintf("%d are different", n)
}

// dialect checks the value of --from.
func dialect(name string) error {
	names := translate.Dialects()
	for _, n := range names {
		if n == name || name == "" {
			return nil
		}
	}
	cure := "there are " + strings.Join(names, ", ")
	if near := spell.Nearest(name, names); near != "" {
		cure += "; did you mean " + near + "?"
	}
	return advise(usage("--from %s: there is no such dialect", name), cure)
}
