package jobs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// attemptSummary is one execution of a task, as its events tell it.
type attemptSummary struct {
	id         string
	number     uint32
	chunk      uint32
	node       string
	start, end int64
	endText    string
}

func attempts(events []*scheddapi.JobEvent) []*attemptSummary {
	var list []*attemptSummary
	index := map[string]*attemptSummary{}
	for _, e := range events {
		if e.GetAttempt() == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%d/%d", e.GetId(), e.GetChunk(), e.GetAttempt())
		a := index[key]
		if a == nil {
			a = &attemptSummary{id: e.GetId(), number: e.GetAttempt(), chunk: e.GetChunk()}
			index[key] = a
			list = append(list, a)
		}
		if e.GetNode() != "" {
			a.node = e.GetNode()
		}
		if e.GetWhat() == "started" {
			a.start = e.GetTime()
		}
		if e.GetExit() != nil {
			a.end, a.endText = e.GetTime(), document.EndText(e.GetExit())
		}
	}
	return list
}

// taskLabel names a task in a list about its job; it is empty for the only task.
func taskLabel(id string, several bool) string {
	if several {
		return id
	}
	return ""
}

func showAttempts(c *frame.Invocation, list []*attemptSummary, several bool) {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "ATTEMPT"}, {Head: "TASK"}, {Head: "CHUNK"},
		{Head: "NODE"}, {Head: "POOL"},
		{Head: "STARTED"}, {Head: "TIME", RightAligned: true}, {Head: "ENDING", MinWidth: 10}}}
	parted := slices.ContainsFunc(list, func(a *attemptSummary) bool { return a.chunk > 0 })
	for _, a := range list {
		took, chunk := "-", ""
		if parted {
			chunk = fmt.Sprint(a.chunk)
		}
		if a.start != 0 && a.end != 0 {
			// the two clocks are the starter's and the schedd's
			took = document.SpanText(max(document.TimeOfNanos(a.end).Sub(document.TimeOfNanos(a.start)), 0))
		}
		t.AddRow(frame.TableCell{Text: fmt.Sprint(a.number)}, frame.TableCell{Text: taskLabel(a.id, several)},
			frame.TableCell{Text: chunk},
			frame.TableCell{Text: a.node}, frame.TableCell{Text: document.PoolOfNode(a.node)},
			frame.TableCell{Text: c.AgoText(a.start)}, frame.TableCell{Text: took},
			frame.TableCell{Text: a.endText})
	}
	t.DropEmptyColumns("NODE", "POOL", "ENDING")
	t.DropEmptyColumns("TASK")
	t.DropEmptyColumns("CHUNK")
	io.WriteString(c.Stdout, "\n")
	t.Print(c.Stdout, c.OutScreen)
}

func showEvents(c *frame.Invocation, events []*scheddapi.JobEvent, several, more bool) {
	if len(events) == 0 {
		return
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "TIME"}, {Head: "TASK"}, {Head: "EVENT"},
		{Head: "", MinWidth: 10}}}
	for _, e := range events {
		text := document.PrintableText(e.GetText())
		if e.GetNode() != "" && !strings.Contains(text, e.GetNode()) {
			text = strings.TrimSpace(text + " on " + e.GetNode())
		}
		if how := document.EndText(e.GetExit()); how != "" && !strings.Contains(text, how) {
			text = strings.TrimSpace(how + " " + text)
		}
		if e.GetChunk() > 0 {
			text = strings.TrimSpace(fmt.Sprintf("chunk %d %s", e.GetChunk(), text))
		}
		t.AddRow(frame.TableCell{Text: eventTime(c, e.GetTime()), Colour: frame.Dim},
			frame.TableCell{Text: taskLabel(e.GetId(), several)},
			frame.TableCell{Text: e.GetWhat()}, frame.TableCell{Text: text})
	}
	t.DropEmptyColumns("TASK")
	io.WriteString(c.Stdout, "\n")
	t.Print(c.Stdout, c.OutScreen)
	if more {
		fmt.Fprintf(c.Stdout, "… and more: roost show --events 0 %s\n", c.Args[0])
	}
}

// eventTime is the time of an event: on a terminal the time of day if that was today.
func eventTime(c *frame.Invocation, ns int64) string {
	t := document.TimeOfNanos(ns)
	if !c.OutScreen.Terminal {
		return document.Timestamp(ns)
	}
	if local := t.In(c.Now().Location()); local.YearDay() == c.Now().YearDay() && c.Now().Sub(t) < 24*time.Hour {
		return local.Format("15:04:05.000")
	}
	return t.In(c.Now().Location()).Format("2006-01-02 15:04:05")
}
