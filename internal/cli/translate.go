package cli

import (
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/translate"
)

func translateCommand() *command {
	return &command{
		name: "translate", group: groupRun, summary: "turn a script of PBS, Slurm or HTCondor into a job file",
		synopsis: "FILE", minOperands: 1, maxOperands: 1, operandName: "a script, or - for standard input",
		run: translateFile,
		description: "Reads a script with #PBS or #SBATCH lines, or a submit description of HTCondor, and prints a " +
			"job file in HCL that does the same. Comments in it tell what could not be carried over, and what to do " +
			"instead. How many there are is said on standard error.",
		examples: []commandExample{
			{"roost translate train.sbatch -o train.hcl", "then look at it, and: roost submit train.hcl"},
			{"roost translate run.pbs | roost submit -", "submit what a PBS script says"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "write to this `FILE`, which must not be there yet"},
			&ucli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "write over the file"},
			&ucli.StringFlag{Name: "from",
				Usage: "what it is written for, `pbs|torque|slurm|condor`, where that is not to be guessed"},
		},
	}
}

func translateFile(c *invocation) error {
	file, from := c.args[0], c.stringFlag("from")
	if err := detectDialect(from); err != nil {
		return err
	}
	src, err := c.readInput(file)
	if err != nil {
		return err
	}
	shown := printableText(file)
	if file == "-" {
		shown, file = "standard input", ""
	}
	r, err := translate.TranslateFile(src, translate.SourceOptions{Name: file, From: translate.Dialect(from)})
	if errors.Is(err, translate.ErrNothing) {
		fmt.Fprintf(c.stderr, "%s %s: nothing to translate: %v\n", c.err.colourText(red, "roost:"), shown, err)
		return exitError(1)
	}
	if err != nil {
		return kindErrorf(roost.Invalid, "%s: %v", shown, err)
	}
	if out := c.stringFlag("output"); out != "" {
		if err := c.writeNewFile(out, r.Text); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(c.stdout, r.Text); err != nil {
		return kindErrorf(roost.NoOutput, "%v", err)
	}
	var said []string
	if r.Lost > 0 {
		said = append(said, plural(r.Lost, "thing")+" not carried over")
	}
	if r.Different > 0 {
		said = append(said, differingText(r.Different)+" here")
	}
	if len(said) > 0 {
		fmt.Fprintf(c.stderr, "%s: %s: see the comments\n", shown, strings.Join(said, ", "))
	}
	return nil
}

func differingText(n int) string {
	if n == 1 {
		return "1 is different"
	}
	return fmt.Sprintf("%d are different", n)
}

// detectDialect checks the value of --from.
func detectDialect(name string) error {
	names := translate.Dialects()
	for _, n := range names {
		if n == name || name == "" {
			return nil
		}
	}
	cure := "there are " + strings.Join(names, ", ")
	if near := suggest.Nearest(name, names); near != "" {
		cure += "; did you mean " + near + "?"
	}
	return withHint(usageErrorf("--from %s: there is no such dialect", name), cure)
}
