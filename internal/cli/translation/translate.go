package translation

import (
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/translate"
)

// TranslateCommand returns roost translate: turn a script of PBS, Slurm or HTCondor into
// a job file.
func TranslateCommand() *frame.Command {
	return &frame.Command{
		Name: "translate", Group: frame.GroupRun, Summary: "turn a script of PBS, Slurm or HTCondor into a job file",
		Synopsis: "FILE", MinOperands: 1, MaxOperands: 1, OperandName: "a script, or - for standard input",
		Run: translateFile,
		Description: "Reads a script with #PBS or #SBATCH lines, or a submit description of HTCondor, and prints a " +
			"job file in HCL that does the same. Comments in it tell what could not be carried over, and what to do " +
			"instead. How many there are is said on standard error.",
		Examples: []frame.Example{
			{Line: "roost translate train.sbatch -o train.hcl",
				Description: "then look at it, and: roost submit train.hcl"},
			{Line: "roost translate run.pbs | roost submit -", Description: "submit what a PBS script says"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "write to this `FILE`, which must not be there yet"},
			&ucli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "write over the file"},
			&ucli.StringFlag{Name: "from",
				Usage: "what it is written for, `pbs|torque|slurm|condor`, where that is not to be guessed"},
		},
	}
}

func translateFile(c *frame.Invocation) error {
	file, from := c.Args[0], c.StringFlag("from")
	if err := detectDialect(from); err != nil {
		return err
	}
	src, err := jobs.ReadInput(c, file)
	if err != nil {
		return err
	}
	shown := document.PrintableText(file)
	if file == "-" {
		shown, file = "standard input", ""
	}
	r, err := translate.TranslateFile(src, translate.SourceOptions{Name: file, From: translate.Dialect(from)})
	if errors.Is(err, translate.ErrNothing) {
		fmt.Fprintf(c.Stderr, "%s %s: nothing to translate: %v\n", c.ErrScreen.ColourText(frame.Red, "roost:"), shown,
			err)
		return frame.ExitError(1)
	}
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%s: %v", shown, err)
	}
	if out := c.StringFlag("output"); out != "" {
		if err := c.WriteNewFile(out, r.Text); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(c.Stdout, r.Text); err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	var notes []string
	if r.Lost > 0 {
		notes = append(notes, document.Plural(r.Lost, "thing")+" not carried over")
	}
	if r.Different > 0 {
		notes = append(notes, differingText(r.Different)+" here")
	}
	if len(notes) > 0 {
		fmt.Fprintf(c.Stderr, "%s: %s: see the comments\n", shown, strings.Join(notes, ", "))
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
	return frame.WithHint(frame.UsageErrorf("--from %s: there is no such dialect", name), cure)
}
