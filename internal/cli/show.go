package cli

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
	"github.com/roost-batch/roost/internal/wire"
)

// maxEvents bounds how much of a long life is shown unless more is asked for.
const maxEvents = 50

func showCommand() *command {
	return &command{
		name: "show", group: groupSee, summary: "show everything about a job", synopsis: "JOB", minOperands: 1,
		maxOperands: 1, operandName: "a job", run: showJob,
		description: "Shows the record of a job or of one task: what it asks for, how it stands, its attempts, " +
			"and what has happened to it so far. " + selectors,
		examples: []commandExample{
			{"roost show last", "your newest job"},
			{"roost show --ad 123[7]", "a task, with the job's whole ad"},
		},
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "ad", Usage: "also print the ad: every attribute"},
			&ucli.IntFlag{Name: "events", Usage: "show at most `N` events; 0 for all", Value: maxEvents},
			jsonFlag(),
		},
	}
}

// findJob finds the single job or task that a selector names.
func (c *invocation) findJob(selector string, req *wire.QueryRequest) (*wire.JobStatus, error) {
	task := namesOnlyTasks([]string{selector})
	req.Selection, req.History, req.Tasks, req.Limit = &wire.Selection{Selectors: []string{selector}}, true, task, 2
	found, missing, err := c.queryPool("", req)
	if err == nil && len(found) == 0 {
		err = unreachableError(missing)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, kindErrorf(roost.NotFound, "%s: there is no such job", selector)
	case len(found) > 1:
		return nil, withHint(usageErrorf("%s names several jobs, and one is wanted", selector),
			"list them with: roost jobs '"+selector+"'")
	}
	return found[0], nil
}

// resolveSelector turns a selector such as "last" into an id; ids stay as they are.
func (c *invocation) resolveSelector(selector string) (string, error) {
	if selector != "" && selector[0] >= '0' && selector[0] <= '9' {
		return selector, nil
	}
	s, err := c.findJob(selector, &wire.QueryRequest{})
	return s.GetId(), err
}

func showJob(c *invocation) error {
	s, err := c.findJob(c.args[0], &wire.QueryRequest{Ads: true})
	if err != nil {
		return err
	}
	events, more, err := c.events(s.GetId(), c.countFlag("events"))
	if err != nil {
		return err
	}
	if c.wantsJSON() {
		return c.showJSON(s, events)
	}
	c.showRecord(s)
	several := s.GetTasks() > 1 || s.GetArray()
	if list := attempts(events); len(list) > 0 {
		c.showAttempts(list, several)
	}
	c.showEvents(events, several, more)
	if c.flag("ad") {
		fmt.Fprintf(c.stdout, "\n%s\n%s\n", c.out.colourText(bold, "Ad"), strings.TrimRight(adLines(s.GetAd()), "\n"))
	}
	return nil
}

// events reads what happened to a job, and reports whether there is more than limit.
func (c *invocation) events(id string, limit int) (events []*wire.JobEvent, more bool, err error) {
	err = c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.Events(ctx, &wire.EventsRequest{Id: id})
		if err != nil {
			return err
		}
		ask := limit
		if limit > 0 {
			ask++
		}
		events, err = drainStream(stream, ask)
		return err
	})
	if limit > 0 && len(events) > limit {
		return events[:limit], true, err
	}
	return events, false, err
}

func (c *invocation) showJSON(s *wire.JobStatus, events []*wire.JobEvent) error {
	records := make([]eventRecord, len(events))
	for i, e := range events {
		records[i] = eventRecordOf(e)
	}
	d := jsonDocument{"job": jobRecordOf(s, s.GetState() != ""), "events": records}
	if hints := c.hints(s); len(hints) > 0 {
		d["hints"] = hints
	}
	if ad, err := classad.Parse(s.GetAd()); err == nil && s.GetAd() != "" {
		if text, err := ad.MarshalJSON(); err == nil {
			d["ad"] = json.RawMessage(text)
		}
	}
	return printJSON(c.stdout, d)
}

func (c *invocation) showRecord(s *wire.JobStatus) {
	state := stateOf(s)
	fmt.Fprintf(c.stdout, "%s  %s  %s\n\n", c.out.colourText(bold, s.GetId()), printableText(s.GetName()),
		c.out.colourText(stateColour(state), state))
	row := func(head, text string) {
		if text != "" && text != "-" {
			fmt.Fprintf(c.stdout, "  %-11s %s\n", head, text)
		}
	}
	row("owner", printableText(s.GetOwner()))
	row("band", fmt.Sprintf("%s, priority %d", s.GetBand(), s.GetPriority()))
	row("queue", printableText(s.GetQueue()))
	row("request", s.GetRequest().Vector().String())
	if s.GetState() == "" && (s.GetTasks() > 1 || s.GetArray()) {
		row("tasks", fmt.Sprintf("%d: %s", s.GetTasks(), countsText(s)))
	}
	row("submitted", c.agoText(s.GetSubmitted()))
	if s.GetStarted() != 0 {
		row("started", c.agoText(s.GetStarted()))
	}
	if s.GetEnded() != 0 {
		row("ended", c.agoText(s.GetEnded()))
	}
	row("time", c.runTimeText(s))
	if len(s.GetChunks()) > 0 {
		row("chunks", chunksText(s.GetChunks()))
		if n := len(s.GetReleased()); n > 0 {
			row("released", fmt.Sprintf("%d more chunks, which it asks for again when it has to start again", n))
		}
	} else {
		row("node", s.GetNode())
	}
	row("placed", placedText(s.GetPlaced()))
	row("ending", endText(s.GetExit()))
	if e := s.GetExit(); e.GetMaxRss() > 0 || e.GetUserCpu() > 0 {
		row("used", usageText(e))
	}
	c.showUsage(s, row)
	if d := s.GetDumpable(); d != "" {
		row("dumpable", printableText(d))
	}
	if n := s.GetCheckpoints(); n > 0 {
		row("checkpoints", fmt.Sprintf("%d kept, the last taken %s", n, c.agoText(s.GetCheckpointed())))
	}
	if s.GetReason() != endText(s.GetExit()) {
		row("reason", printableText(s.GetReason()))
	}
	if _, host, _ := strings.Cut(s.GetId(), "."); s.GetDiscreet() {
		row("hidden", "its arguments, environment and script, which only its owner is shown, on "+host)
	}
	for _, text := range c.hints(s) {
		row("hint", text)
	}
}

// showUsage is what a task uses now.
func (c *invocation) showUsage(s *wire.JobStatus, row func(head, text string)) {
	u := s.GetUsage()
	if u == nil {
		return
	}
	text := fmt.Sprintf("%s cpu, %v memory, at most %v", spanText(time.Duration(u.GetUserCpu()+u.GetSystemCpu())),
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
func usageText(e *wire.ExitStatus) string {
	text := fmt.Sprintf("%s cpu, %v peak memory", spanText(time.Duration(e.GetUserCpu()+e.GetSystemCpu())),
		peakMemory(e))
	u := e.GetUsage()
	if n := u.GetPeakGpuMemory(); n > 0 {
		text += fmt.Sprintf(", %v peak GPU memory", roost.Bytes(n))
	}
	if u.GetReadBytes()+u.GetWriteBytes() > 0 {
		text += fmt.Sprintf(", %v read, %v written", roost.Bytes(u.GetReadBytes()), roost.Bytes(u.GetWriteBytes()))
	}
	return text
}

// peakMemory is the highest of an attempt's memory: of all its processes together, or
// where that was not measured of the largest.
func peakMemory(e *wire.ExitStatus) roost.Bytes {
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

func attempts(events []*wire.JobEvent) []*attemptSummary {
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
			a.end, a.endText = e.GetTime(), endText(e.GetExit())
		}
	}
	return list
}

// taskLabel is how a task is named in a list about a job: not at all if it is the only
// one.
func taskLabel(id string, several bool) string {
	if several {
		return id
	}
	return ""
}

func (c *invocation) showAttempts(list []*attemptSummary, several bool) {
	t := &textTable{columns: []tableColumn{{head: "ATTEMPT"}, {head: "TASK"}, {head: "CHUNK"}, {head: "NODE"},
		{head: "STARTED"}, {head: "TIME", rightAligned: true}, {head: "ENDING", minWidth: 10}}}
	parted := slices.ContainsFunc(list, func(a *attemptSummary) bool { return a.chunk > 0 })
	for _, a := range list {
		took, chunk := "-", ""
		if parted {
			chunk = fmt.Sprint(a.chunk)
		}
		if a.start != 0 && a.end != 0 {
			// the two clocks are the starter's and the schedd's
			took = spanText(max(timeOfNanos(a.end).Sub(timeOfNanos(a.start)), 0))
		}
		t.addRow(tableCell{fmt.Sprint(a.number), ""}, tableCell{taskLabel(a.id, several), ""}, tableCell{chunk, ""},
			tableCell{a.node, ""}, tableCell{c.agoText(a.start), ""}, tableCell{took, ""}, tableCell{a.endText, ""})
	}
	t.dropEmptyColumns("NODE", "ENDING")
	t.dropEmptyColumns("TASK")
	t.dropEmptyColumns("CHUNK")
	io.WriteString(c.stdout, "\n")
	t.print(c.stdout, c.out)
}

func (c *invocation) showEvents(events []*wire.JobEvent, several, more bool) {
	if len(events) == 0 {
		return
	}
	t := &textTable{columns: []tableColumn{{head: "TIME"}, {head: "TASK"}, {head: "EVENT"}, {head: "", minWidth: 10}}}
	for _, e := range events {
		text := printableText(e.GetText())
		if e.GetNode() != "" && !strings.Contains(text, e.GetNode()) {
			text = strings.TrimSpace(text + " on " + e.GetNode())
		}
		if how := endText(e.GetExit()); how != "" && !strings.Contains(text, how) {
			text = strings.TrimSpace(how + " " + text)
		}
		if e.GetChunk() > 0 {
			text = strings.TrimSpace(fmt.Sprintf("chunk %d %s", e.GetChunk(), text))
		}
		t.addRow(tableCell{c.eventTime(e.GetTime()), dim}, tableCell{taskLabel(e.GetId(), several), ""},
			tableCell{e.GetWhat(), ""}, tableCell{text, ""})
	}
	t.dropEmptyColumns("TASK")
	io.WriteString(c.stdout, "\n")
	t.print(c.stdout, c.out)
	if more {
		fmt.Fprintf(c.stdout, "… and more: roost show --events 0 %s\n", c.args[0])
	}
}

// eventTime is a time of an event: the time of day on a terminal if it was today, and the
// whole elsewhere.
func (c *invocation) eventTime(ns int64) string {
	t := timeOfNanos(ns)
	if !c.out.terminal {
		return timestamp(ns)
	}
	if local := t.In(c.now().Location()); local.YearDay() == c.now().YearDay() && c.now().Sub(t) < 24*time.Hour {
		return local.Format("15:04:05.000")
	}
	return t.In(c.now().Location()).Format("2006-01-02 15:04:05")
}

// adLines prints an ad with an attribute a line.
func adLines(text string) string {
	ad, err := classad.Parse(text)
	if err != nil {
		return printableText(text)
	}
	return ad.Old()
}
