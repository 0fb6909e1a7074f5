package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// maxEvents bounds how much of a long life is shown unless more is asked for.
const maxEvents = 50

// ShowCommand returns roost show: show everything about a job.
func ShowCommand() *frame.Command {
	return &frame.Command{
		Name: "show", Group: frame.GroupSee, Summary: "show everything about a job", Synopsis: "JOB", MinOperands: 1,
		MaxOperands: 1, OperandName: "a job", Run: showJob,
		Description: "Shows the record of a job or of one task: what it asks for, how it stands, its attempts, " +
			"and what has happened to it so far. " + selectors,
		Examples: []frame.Example{
			{Line: "roost show last", Description: "your newest job"},
			{Line: "roost show --ad 123[7]", Description: "a task, with the job's whole ad"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "ad", Usage: "also print the ad: every attribute"},
			&ucli.IntFlag{Name: "events", Usage: "show at most `N` events; 0 for all", Value: maxEvents},
			frame.JSONFlag(),
		},
	}
}

// FindJob finds the single job or task that a selector names.
func FindJob(c *frame.Invocation, selector string, req *scheddapi.QueryRequest) (*scheddapi.JobStatus, error) {
	task := frame.NamesOnlyTasks([]string{selector})
	req.Selection, req.History, req.Tasks, req.Limit = &scheddapi.Selection{Selectors: []string{selector}}, true, task,
		2
	found, missing, err := c.QueryPool("", req)
	if err == nil && len(found) == 0 {
		err = frame.UnreachableError(missing)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, frame.KindErrorf(roost.NotFound, "%s: there is no such job", selector)
	case len(found) > 1:
		return nil, frame.WithHint(frame.UsageErrorf("%s names several jobs, and one is wanted", selector),
			"list them with: roost jobs '"+selector+"'")
	}
	return found[0], nil
}

// ResolveSelector turns a selector such as "last" into an id; ids stay as they are.
func ResolveSelector(c *frame.Invocation, selector string) (string, error) {
	if selector != "" && selector[0] >= '0' && selector[0] <= '9' {
		return selector, nil
	}
	s, err := FindJob(c, selector, &scheddapi.QueryRequest{})
	return s.GetId(), err
}

func showJob(c *frame.Invocation) error {
	s, err := FindJob(c, c.Args[0], &scheddapi.QueryRequest{Ads: true})
	if err != nil {
		return err
	}
	several := s.GetTasks() > 1 || s.GetArray()
	limit, read := c.CountFlag("events"), c.CountFlag("events")
	if !several || s.GetState() != "" {
		read = 0 // the timeline of a task is made of all its events
	}
	events, more, err := Events(c, s.GetId(), read)
	if err != nil {
		return err
	}
	var timeline document.CheckpointTimeline
	var chain document.PreemptionChain
	if read == 0 {
		timeline = document.CheckpointTimelineOf(s, events, c.Now())
		chain = document.PreemptionChainOf(&timeline, events)
		if limit > 0 && len(events) > limit {
			events, more = events[:limit], true
		}
	}
	if c.WantsJSON() {
		return showJSON(c, s, events, &timeline, &chain)
	}
	showRecord(c, s, &timeline)
	if err := showServiceTasks(c, s); err != nil {
		return err
	}
	if list := attempts(events); len(list) > 0 {
		showAttempts(c, list, several)
	}
	showPreemptions(c, &chain)
	showEvents(c, events, several, more)
	if c.Flag("ad") {
		fmt.Fprintf(c.Stdout, "\n%s\n%s\n", c.OutScreen.ColourText(frame.Bold, "Ad"),
			strings.TrimRight(adLines(s.GetAd()), "\n"))
	}
	return nil
}

// Events reads what happened to a job, and reports whether there is more than limit.
func Events(c *frame.Invocation, id string, limit int) (events []*scheddapi.JobEvent, more bool, err error) {
	err = c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.Events(ctx, &scheddapi.EventsRequest{Id: id})
		if err != nil {
			return err
		}
		ask := limit
		if limit > 0 {
			ask++
		}
		events, err = frame.DrainStream(stream, ask)
		return err
	})
	if limit > 0 && len(events) > limit {
		return events[:limit], true, err
	}
	return events, false, err
}

func showJSON(c *frame.Invocation, s *scheddapi.JobStatus, events []*scheddapi.JobEvent,
	t *document.CheckpointTimeline, chain *document.PreemptionChain) error {
	records := make([]document.Event, len(events))
	for i, e := range events {
		records[i] = document.EventOf(e)
	}
	d := frame.JSONDocument{"job": document.JobOf(s, s.GetState() != ""), "events": records}
	if len(t.Images) > 0 {
		d["checkpoints"] = t
	}
	if !chain.IsEmpty() {
		d["preemption"] = chain
	}
	if schedule := document.ScheduleOf(s.GetAd(), s.GetOwner(), c.Now()); schedule != nil {
		d["schedule"] = schedule
	}
	if logs := document.ServiceLogsOf(s.GetAd()); logs != nil {
		d["logs"] = logs
	}
	if hints := hints(c, s); len(hints) > 0 {
		d["hints"] = hints
	}
	if ad, err := classad.Parse(s.GetAd()); err == nil && s.GetAd() != "" {
		if text, err := ad.MarshalJSON(); err == nil {
			d["ad"] = json.RawMessage(text)
		}
	}
	return frame.PrintJSON(c.Stdout, d)
}

func showRecord(c *frame.Invocation, s *scheddapi.JobStatus, t *document.CheckpointTimeline) {
	state := document.StateOf(s)
	fmt.Fprintf(c.Stdout, "%s  %s  %s\n\n", c.OutScreen.ColourText(frame.Bold, s.GetId()),
		document.PrintableText(s.GetName()),
		c.OutScreen.ColourText(frame.StateColour(state), state))
	row := func(head, text string) {
		if text != "" && text != "-" {
			fmt.Fprintf(c.Stdout, "  %-11s %s\n", head, text)
		}
	}
	row("owner", document.PrintableText(s.GetOwner()))
	row("band", fmt.Sprintf("%s, priority %d", s.GetBand(), s.GetPriority()))
	row("queue", document.PrintableText(s.GetQueue()))
	row("request", s.GetRequest().Vector().String())
	if s.GetState() == "" && (s.GetTasks() > 1 || s.GetArray()) {
		row("tasks", fmt.Sprintf("%d: %s", s.GetTasks(), document.CountsText(s)))
	}
	showSchedule(c, s, row)
	showService(c, s, row)
	if logs := document.ServiceLogsOf(s.GetAd()); logs != nil {
		row("logs", logs.Text())
	}
	row("submitted", c.AgoText(s.GetSubmitted()))
	if s.GetStarted() != 0 {
		row("started", c.AgoText(s.GetStarted()))
	}
	if s.GetEnded() != 0 {
		row("ended", c.AgoText(s.GetEnded()))
	}
	row("time", c.RunTimeText(s))
	if len(s.GetChunks()) > 0 {
		row("chunks", chunksText(s.GetChunks()))
		if n := len(s.GetReleased()); n > 0 {
			row("released", fmt.Sprintf("%d more chunks, which it asks for again when it has to start again", n))
		}
	} else {
		row("node", s.GetNode())
	}
	row("placed", placedText(s.GetPlaced()))
	row("ports", portsText(s.GetPlaced()))
	row("ending", document.EndText(s.GetExit()))
	if e := s.GetExit(); e.GetMaxRss() > 0 || e.GetUserCpu() > 0 {
		row("used", usageText(e))
	}
	showUsage(c, s, row)
	for _, m := range s.GetTransfers() {
		row("transfer", document.TransferText(m))
	}
	if d := s.GetDumpable(); d != "" {
		row("dumpable", document.PrintableText(d))
	}
	if n := s.GetCheckpoints(); n > 0 {
		row("checkpoints", fmt.Sprintf("%d kept, the last taken %s", n, c.AgoText(s.GetCheckpointed())))
	}
	row("work", t.Summary())
	if s.GetReason() != document.EndText(s.GetExit()) && !saysHealth(s) {
		row("reason", document.PrintableText(s.GetReason()))
	}
	if _, host, _ := strings.Cut(s.GetId(), "."); s.GetDiscreet() {
		row("hidden", "its arguments, environment and script, which only its owner is shown, on "+host)
	}
	for _, text := range hints(c, s) {
		row("hint", text)
	}
}

// showSchedule is when runs of a job are made, or of which schedule it is a run.
func showSchedule(c *frame.Invocation, s *scheddapi.JobStatus, row func(head, text string)) {
	if schedule := document.ScheduleOf(s.GetAd(), s.GetOwner(), c.Now()); schedule != nil {
		row("schedule", document.PrintableText(schedule.Text()))
		for _, at := range schedule.Next {
			row("next", at)
		}
	}
	ad, err := classad.Parse(s.GetAd())
	if err != nil || s.GetAd() == "" {
		return
	}
	if by, ok := ad.Str(roost.AttrScheduledBy); ok {
		at, _ := ad.Int(roost.AttrScheduledAt)
		row("run of", document.PrintableText(by)+", for "+time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
}

// showUsage is what a task uses now.
func showUsage(c *frame.Invocation, s *scheddapi.JobStatus, row func(head, text string)) {
	u := s.GetUsage()
	if u == nil {
		return
	}
	text := fmt.Sprintf("%s cpu, %v memory, at most %v",
		document.SpanText(time.Duration(u.GetUserCpu()+u.GetSystemCpu())),
		roost.Bytes(u.GetMemory()), roost.Bytes(u.GetPeakMemory()))
	if u.GetDisk() > 0 {
		text += fmt.Sprintf(", %v disk", roost.Bytes(u.GetDisk()))
	}
	if u.GetGpuMemory() > 0 {
		text += fmt.Sprintf(", %v GPU memory", roost.Bytes(u.GetGpuMemory()))
	}
	row("uses", text)
}

// usageText is what an attempt used.
func usageText(e *scheddapi.ExitStatus) string {
	text := fmt.Sprintf("%s cpu, %v peak memory", document.SpanText(time.Duration(e.GetUserCpu()+e.GetSystemCpu())),
		PeakMemory(e))
	u := e.GetUsage()
	if n := u.GetPeakGpuMemory(); n > 0 {
		text += fmt.Sprintf(", %v peak GPU memory", roost.Bytes(n))
	}
	if u.GetReadBytes()+u.GetWriteBytes() > 0 {
		text += fmt.Sprintf(", %v read, %v written", roost.Bytes(u.GetReadBytes()), roost.Bytes(u.GetWriteBytes()))
	}
	return text
}

// PeakMemory is the highest memory of an attempt, of all its processes, or else of the
// largest.
func PeakMemory(e *scheddapi.ExitStatus) roost.Bytes {
	if n := e.GetUsage().GetPeakMemory(); n > 0 {
		return roost.Bytes(n)
	}
	return roost.Bytes(e.GetMaxRss())
}

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
		{Head: "NODE"},
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
			frame.TableCell{Text: a.node}, frame.TableCell{Text: c.AgoText(a.start)}, frame.TableCell{Text: took},
			frame.TableCell{Text: a.endText})
	}
	t.DropEmptyColumns("NODE", "ENDING")
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

// adLines prints an ad with an attribute a line.
func adLines(text string) string {
	ad, err := classad.Parse(text)
	if err != nil {
		return document.PrintableText(text)
	}
	return ad.Old()
}
