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
		name: "show", group: groupSee, brief: "show everything about a job", args: "JOB", least: 1, most: 1, wants: "a job", do: showJob,
		about: "Shows the record of a job or of one task: what it asks for, how it stands, its attempts, and what has happened to it so far. " + selectors,
		examples: []example{
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

// one finds the single job or task that a selector names.
func (c *call) one(selector string, req *wire.QueryRequest) (*wire.JobStatus, error) {
	task := everyTask([]string{selector})
	req.Selection, req.History, req.Tasks, req.Limit = &wire.Selection{Selectors: []string{selector}}, true, task, 2
	found, missing, err := c.queryPool("", req)
	if err == nil && len(found) == 0 {
		err = silence(missing)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, problem(roost.NotFound, "%s: there is no such job", selector)
	case len(found) > 1:
		return nil, advise(usage("%s names several jobs, and one is wanted", selector), "list them with: roost jobs '"+selector+"'")
	}
	return found[0], nil
}

// literalID turns a selector such as "last" into an id; ids stay as they are.
func (c *call) literalID(selector string) (string, error) {
	if selector != "" && selector[0] >= '0' && selector[0] <= '9' {
		return selector, nil
	}
	s, err := c.one(selector, &wire.QueryRequest{})
	return s.GetId(), err
}

func showJob(c *call) error {
	s, err := c.one(c.args[0], &wire.QueryRequest{Ads: true})
	if err != nil {
		return err
	}
	events, more, err := c.events(s.GetId(), c.count("events"))
	if err != nil {
		return err
	}
	if c.json() {
		return c.showJSON(s, events)
	}
	c.showRecord(s)
	several := s.GetTasks() > 1 || s.GetArray()
	if list := attempts(events); len(list) > 0 {
		c.showAttempts(list, several)
	}
	c.showEvents(events, several, more)
	if c.flag("ad") {
		fmt.Fprintf(c.stdout, "\n%s\n%s\n", c.out.paint(bold, "Ad"), strings.TrimRight(adLines(s.GetAd()), "\n"))
	}
	return nil
}

// events reads what happened to a job, and reports whether there is more than limit.
func (c *call) events(id string, limit int) (events []*wire.JobEvent, more bool, err error) {
	err = c.ask(askPatience, func(ctx context.Context, s wire.ScheddClient) error {
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
		events, err = drain(stream, ask)
		return err
	})
	if limit > 0 && len(events) > limit {
		return events[:limit], true, err
	}
	return events, false, err
}

func (c *call) showJSON(s *wire.JobStatus, events []*wire.JobEvent) error {
	records := make([]eventRecord, len(events))
	for i, e := range events {
		records[i] = eventOf(e)
	}
	d := document{"job": recordOf(s, s.GetState() != ""), "events": records}
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

func (c *call) showRecord(s *wire.JobStatus) {
	state := stateOf(s)
	fmt.Fprintf(c.stdout, "%s  %s  %s\n\n", c.out.paint(bold, s.GetId()), printable(s.GetName()), c.out.paint(stateColour(state), state))
	row := func(head, text string) {
		if text != "" && text != "-" {
			fmt.Fprintf(c.stdout, "  %-11s %s\n", head, text)
		}
	}
	row("owner", printable(s.GetOwner()))
	row("band", fmt.Sprintf("%s, priority %d", s.GetBand(), s.GetPriority()))
	row("queue", printable(s.GetQueue()))
	row("request", s.GetRequest().Vector().String())
	if s.GetState() == "" && (s.GetTasks() > 1 || s.GetArray()) {
		row("tasks", fmt.Sprintf("%d: %s", s.GetTasks(), countsText(s)))
	}
	row("submitted", c.ago(s.GetSubmitted()))
	if s.GetStarted() != 0 {
		row("started", c.ago(s.GetStarted()))
	}
	if s.GetEnded() != 0 {
		row("ended", c.ago(s.GetEnded()))
	}
	row("time", c.taken(s))
	if len(s.GetChunks()) > 0 {
		row("chunks", chunksText(s.GetChunks()))
	} else {
		row("node", s.GetNode())
	}
	row("placed", placedText(s.GetPlaced()))
	row("ending", ending(s.GetExit()))
	if e := s.GetExit(); e.GetMaxRss() > 0 || e.GetUserCpu() > 0 {
		row("used", spentText(e))
	}
	c.showUse(s, row)
	if d := s.GetDumpable(); d != "" {
		row("dumpable", printable(d))
	}
	if n := s.GetCheckpoints(); n > 0 {
		row("checkpoints", fmt.Sprintf("%d kept, the last taken %s", n, c.ago(s.GetCheckpointed())))
	}
	if s.GetReason() != ending(s.GetExit()) {
		row("reason", printable(s.GetReason()))
	}
	if _, host, _ := strings.Cut(s.GetId(), "."); s.GetDiscreet() {
		row("hidden", "its arguments, environment and script, which only its owner is shown, on "+host)
	}
	for _, text := range c.hints(s) {
		row("hint", text)
	}
}

// showUse is what a task uses now.
func (c *call) showUse(s *wire.JobStatus, row func(head, text string)) {
	u := s.GetUsage()
	if u == nil {
		return
	}
	text := fmt.Sprintf("%s cpu, %v memory, at most %v", span(time.Duration(u.GetUserCpu()+u.GetSystemCpu())), roost.Bytes(u.GetMemory()), roost.Bytes(u.GetPeakMemory()))
	if u.GetDisk() > 0 {
		text += fmt.Sprintf(", %v disk", roost.Bytes(u.GetDisk()))
	}
	if u.GetGpuMemory() > 0 {
		text += fmt.Sprintf(", %v GPU memory", roost.Bytes(u.GetGpuMemory()))
	}
	row("uses", text)
}

// spentText is what an attempt used.
func spentText(e *wire.ExitStatus) string {
	text := fmt.Sprintf("%s cpu, %v peak memory", span(time.Duration(e.GetUserCpu()+e.GetSystemCpu())), peakMemory(e))
	u := e.GetUsage()
	if n := u.GetPeakGpuMemory(); n > 0 {
		text += fmt.Sprintf(", %v peak GPU memory", roost.Bytes(n))
	}
	if u.GetReadBytes()+u.GetWriteBytes() > 0 {
		text += fmt.Sprintf(", %v read, %v written", roost.Bytes(u.GetReadBytes()), roost.Bytes(u.GetWriteBytes()))
	}
	return text
}

// peakMemory is the highest of an attempt's memory: of all its processes together, or where that was not measured of the largest.
func peakMemory(e *wire.ExitStatus) roost.Bytes {
	if n := e.GetUsage().GetPeakMemory(); n > 0 {
		return roost.Bytes(n)
	}
	return roost.Bytes(e.GetMaxRss())
}

// attempt is one execution of a task, as its events tell it.
type attempt struct {
	id         string
	number     uint32
	chunk      uint32
	node       string
	start, end int64
	how        string
}

func attempts(events []*wire.JobEvent) []*attempt {
	var list []*attempt
	index := map[string]*attempt{}
	for _, e := range events {
		if e.GetAttempt() == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%d/%d", e.GetId(), e.GetChunk(), e.GetAttempt())
		a := index[key]
		if a == nil {
			a = &attempt{id: e.GetId(), number: e.GetAttempt(), chunk: e.GetChunk()}
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
			a.end, a.how = e.GetTime(), ending(e.GetExit())
		}
	}
	return list
}

// task is how a task is named in a list about a job: not at all if it is the only one.
func task(id string, several bool) string {
	if several {
		return id
	}
	return ""
}

func (c *call) showAttempts(list []*attempt, several bool) {
	t := &table{columns: []column{{head: "ATTEMPT"}, {head: "TASK"}, {head: "CHUNK"}, {head: "NODE"}, {head: "STARTED"}, {head: "TIME", right: true}, {head: "ENDING", least: 10}}}
	parted := slices.ContainsFunc(list, func(a *attempt) bool { return a.chunk > 0 })
	for _, a := range list {
		took, chunk := "-", ""
		if parted {
			chunk = fmt.Sprint(a.chunk)
		}
		if a.start != 0 && a.end != 0 {
			took = span(max(instant(a.end).Sub(instant(a.start)), 0)) // the two clocks are the starter's and the schedd's
		}
		t.add(cell{fmt.Sprint(a.number), ""}, cell{task(a.id, several), ""}, cell{chunk, ""}, cell{a.node, ""}, cell{c.ago(a.start), ""}, cell{took, ""}, cell{a.how, ""})
	}
	t.drop("NODE", "ENDING")
	t.drop("TASK")
	t.drop("CHUNK")
	io.WriteString(c.stdout, "\n")
	t.print(c.stdout, c.out)
}

func (c *call) showEvents(events []*wire.JobEvent, several, more bool) {
	if len(events) == 0 {
		return
	}
	t := &table{columns: []column{{head: "TIME"}, {head: "TASK"}, {head: "EVENT"}, {head: "", least: 10}}}
	for _, e := range events {
		text := printable(e.GetText())
		if e.GetNode() != "" && !strings.Contains(text, e.GetNode()) {
			text = strings.TrimSpace(text + " on " + e.GetNode())
		}
		if how := ending(e.GetExit()); how != "" && !strings.Contains(text, how) {
			text = strings.TrimSpace(how + " " + text)
		}
		if e.GetChunk() > 0 {
			text = strings.TrimSpace(fmt.Sprintf("chunk %d %s", e.GetChunk(), text))
		}
		t.add(cell{c.moment(e.GetTime()), dim}, cell{task(e.GetId(), several), ""}, cell{e.GetWhat(), ""}, cell{text, ""})
	}
	t.drop("TASK")
	io.WriteString(c.stdout, "\n")
	t.print(c.stdout, c.out)
	if more {
		fmt.Fprintf(c.stdout, "… and more: roost show --events 0 %s\n", c.args[0])
	}
}

// moment is a time of an event: the time of day on a terminal if it was today, and the whole elsewhere.
func (c *call) moment(ns int64) string {
	t := instant(ns)
	if !c.out.terminal {
		return stamp(ns)
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
		return printable(text)
	}
	return ad.Old()
}
