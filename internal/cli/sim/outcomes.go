package sim

import (
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/sim"
	"github.com/roost-batch/roost/internal/sim/trace"
)

// writeOutcomes writes what became of each job: as a log again, or as what the file's
// name says.
func writeOutcomes(c *frame.Invocation, file string, log *trace.Log, played *sim.Result,
	opt sim.ReplayOptions) error {
	var text strings.Builder
	var err error
	switch {
	case strings.HasSuffix(file, ".csv"):
		w := csv.NewWriter(&text)
		names, rows := outcomeTable(played)
		if err = w.Write(names); err == nil {
			err = w.WriteAll(rows)
		}
	case strings.HasSuffix(file, ".json"):
		err = writeObjects(&text, played)
	default:
		headers := append([]trace.HeaderField{}, log.Headers...)
		headers = append(headers, trace.HeaderField{Name: "MaxProcs", Value: strconv.FormatInt(opt.Processors, 10)},
			trace.HeaderField{Name: "Note", Value: "waits are those of roost sim replay --order " +
				c.StringFlag("order") + " --expect " + c.StringFlag("expect") + " --correct " +
				c.StringFlag("correct")})
		err = played.ScheduleLog(headers).Write(&text)
	}
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	return c.WriteNewFile(file, text.String())
}

// outcomeTable is what became of each job, as a table.
func outcomeTable(played *sim.Result) (names []string, rows [][]string) {
	names = []string{
		"job", "line", "user", "submit_seconds", "wait_seconds", "start_seconds", "run_seconds", "processors",
		"asked_seconds", "expected_seconds", "outlived", "out_of_turn",
	}
	for i := range played.Jobs {
		o := &played.Jobs[i]
		row := make([]string, 0, len(names))
		for _, n := range [...]int64{o.ID, int64(o.Line), o.User, o.Submit, o.Waited(), o.Start, o.Length, o.Procs,
			o.RequestedTime, o.Expected, int64(o.Outlived)} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, append(row, strconv.FormatBool(o.Early)))
	}
	return names, rows
}

// writeObjects writes the table as a list of objects, one a line, with the columns'
// names.
func writeObjects(text *strings.Builder, played *sim.Result) error {
	names, rows := outcomeTable(played)
	text.WriteString("[")
	for i, row := range rows {
		if i > 0 {
			text.WriteString(",")
		}
		text.WriteString("\n{")
		for k, value := range row { // numbers and true or false: as they are
			name, err := json.Marshal(names[k])
			if err != nil {
				return err
			}
			if k > 0 {
				text.WriteString(", ")
			}
			text.Write(name)
			text.WriteString(": " + value)
		}
		text.WriteString("}")
	}
	text.WriteString("\n]\n")
	return nil
}
