package sim

import (
	"encoding/csv"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/plot"
)

// resultFlags say where the results of a simulation go. All that roost sim does takes
// them, and they mean the same everywhere.
func resultFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "csv",
			Usage: "write the result as a table to this `FILE`, with commas between the columns"},
		&ucli.StringFlag{Name: "svg", Usage: "draw the result into this `FILE`"},
		overwriteFlag(),
		frame.JSONFlag(),
	}
}

func overwriteFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "write over files"}
}

// seedFlag is that of all that draws random numbers.
func seedFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "seed", Usage: "draw what is left to chance from this seed `N`: the same gives the same",
		Value: 1}
}

// writeTable writes a table to the file that --csv names, if there is one. A column's
// name ends with its unit, as wait_seconds does.
func writeTable(c *frame.Invocation, head []string, rows [][]string) error {
	file := c.StringFlag("csv")
	if file == "" {
		return nil
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	if err := w.Write(head); err != nil {
		return err
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return c.WriteNewFile(file, text.String())
}

// timeAxis is an axis of so many seconds from a checkpoint on, and how many seconds its
// unit has.
func timeAxis(seconds int64) (plot.ChartAxis, float64) {
	unit := 60.
	switch {
	case seconds > 4*86400:
		unit = 86400
	case seconds > 4*3600:
		unit = 3600
	}
	return plot.ChartAxis{Label: "time from the checkpoint on (" + unitName(unit) + ")"}, unit
}

// unitName is what a unit of so many seconds is called.
func unitName(seconds float64) string {
	switch seconds {
	case 86400:
		return "days"
	case 3600:
		return "hours"
	}
	return "minutes"
}

// requireNewFile refuses a file that is there, if it is not to be written over.
func requireNewFile(c *frame.Invocation, file string) error {
	if file == "" || c.Flag("force") {
		return nil
	}
	if _, err := os.Lstat(c.AbsolutePath(file)); err == nil && !frame.IsStream(c.AbsolutePath(file)) {
		return frame.WithHint(frame.KindErrorf(roost.NoOutput, "%s is there already", document.PrintableText(file)),
			"name another file, or write over it with --force")
	}
	return nil
}

// writeCharts draws charts, one below the other, into the file that --svg names, if there
// is one.
func writeCharts(c *frame.Invocation, charts ...plot.Chart) error {
	file := c.StringFlag("svg")
	if file == "" {
		return nil
	}
	var text strings.Builder
	if err := plot.Write(&text, charts...); err != nil {
		return err
	}
	return c.WriteNewFile(file, text.String())
}
