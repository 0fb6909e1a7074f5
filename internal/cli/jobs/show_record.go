package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

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
	if p := progressOf(c, s); p != nil && p.End != "" {
		end, _ := time.Parse(time.RFC3339, p.End)
		row("progress", fmt.Sprintf("%d of %d ended; all about %s, if they go on so", p.Ended, p.Tasks,
			c.StartHour(end)))
	}
	showSchedule(c, s, row)
	showService(c, s, row)
	showSettings(s, row)
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
		if pool := document.PoolOfNode(s.GetNode()); pool != "" {
			row("pool", pool+", which lends machines to this one")
		}
	}
	row("placed", placedText(s.GetPlaced()))
	row("ports", portsText(s.GetPlaced()))
	showEnding(s.GetExit(), row)
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
	showEpochs(c, s, row)
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

// showSettings is what a job says of its container image and of its output.
func showSettings(s *scheddapi.JobStatus, row func(head, text string)) {
	if image := document.ContainerImageOf(s.GetAd()); image != nil {
		row("image", image.Text())
		for _, m := range image.Mounts {
			row("mount", document.PrintableText(m))
		}
	}
	if w := document.MachineOptionsOf(s.GetAd()); w != nil {
		row("machine", w.Text())
	}
	for _, m := range document.PackageMountsOf(s.GetAd()) {
		row("package", m.Text())
	}
	if logs := document.ServiceLogsOf(s.GetAd()); logs != nil {
		row("logs", logs.Text())
	}
}

// showEpochs says what is saved of gangs whose tasks save their state together.
func showEpochs(c *frame.Invocation, s *scheddapi.JobStatus, row func(head, text string)) {
	for _, g := range s.GetEpochs() {
		epoch := document.GangEpochOf(g)
		text := epoch.Text(c.AgoText(g.GetTime()))
		if len(s.GetEpochs()) > 1 {
			text = fmt.Sprintf("of gang %d: %s", g.GetGang(), text)
		}
		row("saved", text)
	}
}

// showEnding says how an attempt ended, what it used, and where its output is.
func showEnding(e *scheddapi.ExitStatus, row func(head, text string)) {
	row("ending", document.EndText(e))
	if e.GetMaxRss() > 0 || e.GetUserCpu() > 0 {
		row("used", usageText(e))
	}
	if o := document.StoredOutputOf(e); o != nil {
		row("stored", o.Text()+"; roost fetch and roost logs get it")
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
