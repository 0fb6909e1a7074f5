package jobs

import (
	"fmt"
	"io"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// showService prints how a service is, or a task of it, and how far its update is. Of an
// alloc set it prints what is inside.
func showService(c *frame.Invocation, s *scheddapi.JobStatus, row func(head, text string)) {
	showAlloc(s, row)
	h := s.GetService()
	if d := document.ServiceOf(h); d != nil {
		if s.GetState() == "" || s.GetTasks() > 1 {
			row("service", d.Text())
		}
		if d.State != "" {
			row("health", fmt.Sprintf("%s, since %s", d.State, c.AgoText(h.GetSince())))
		}
		head := "checks"
		for i, one := range d.Checks {
			text := fmt.Sprintf("%s (%s)", one.Name, one.Text())
			if d.State != "" {
				text += ": " + one.ResultText()
			}
			if since := h.GetChecks()[i].GetSince(); since != 0 {
				text += ", since " + c.AgoText(since)
			}
			row(head, text)
			head = ""
		}
		row("restarts", restartsText(c, h))
		if h.GetRevision() > 0 {
			row("revision", fmt.Sprint(h.GetRevision()))
		}
	}
	if s.GetState() == "" || s.GetTasks() > 1 || s.GetTasks() == 1 && !strings.Contains(s.GetId(), "[") {
		showAutoscale(c, h.GetAutoscale(), row)
		showVerticalAutoscale(h.GetVertical(), row)
	}
	if u := document.UpdateOf(s.GetUpdate()); u != nil {
		row("update", u.Text())
		if c.OutScreen.Terminal {
			row("", updateBar(c, u))
		}
		row("budget", u.BudgetText())
	}
}

// showAutoscale prints how the number of tasks of a service follows its load.
func showAutoscale(c *frame.Invocation, m *scheddapi.AutoscaleStatus, row func(head, text string)) {
	a := document.AutoscaleOf(m)
	if a == nil {
		return
	}
	row("autoscale", a.Text())
	if a.Reason != "" {
		row("", document.PrintableText(a.Reason))
	}
	if a.Problem != "" {
		row("", document.PrintableText(a.Problem))
	}
	if n := len(m.GetChanges()); n > 0 {
		last := m.GetChanges()[n-1]
		row("scaled", fmt.Sprintf("from %d to %d tasks, %s", last.GetFrom(), last.GetTo(), c.AgoText(last.GetAt())))
	}
}

// showVerticalAutoscale prints how the size of a service's tasks follows their use.
func showVerticalAutoscale(m *scheddapi.SizeStatus, row func(head, text string)) {
	v := document.VerticalAutoscaleOf(m)
	if v == nil {
		return
	}
	row("size", v.Text())
	if v.Reason != "" {
		row("", document.PrintableText(v.Reason))
	}
	if v.Problem != "" {
		row("", document.PrintableText(v.Problem))
	}
}

// saysHealth reports whether the reason of a job says no more than showService does.
func saysHealth(s *scheddapi.JobStatus) bool {
	h := s.GetService()
	return h != nil && (s.GetReason() == h.GetState() || s.GetReason() == document.ServiceOf(h).Text())
}

// restartsText says how often a task was started again, and when it is the next time.
func restartsText(c *frame.Invocation, h *scheddapi.ServiceHealth) string {
	if h.GetRestarts() == 0 && h.GetRestartAt() == 0 {
		return ""
	}
	text := fmt.Sprint(h.GetRestarts())
	if n := h.GetEarlyEnds(); n > 1 {
		text += fmt.Sprintf(", after %d early ends in a row", n)
	}
	switch at := h.GetRestartAt(); {
	case at == 0:
	case document.TimeOfNanos(at).Before(c.Now()):
		text += ", the next one now"
	case c.OutScreen.Terminal:
		text += ", the next one " + c.AgoText(at)
	default:
		text += ", the next one at " + c.AgoText(at)
	}
	return text
}

// updateBarWidth is how many characters wide the bar of an update is.
const updateBarWidth = 40

// updateBar draws how far an update is: new tasks, those on their way, and old ones.
func updateBar(c *frame.Invocation, u *document.Update) string {
	total, done, failed := u.Total(), u.Tasks["new"], u.Tasks["failed"]
	if total == 0 {
		return ""
	}
	old := u.Tasks["old"] + u.Tasks["excluded"]
	bar, at := "", 0
	add := func(upTo uint32, sign, colour string) {
		end := int(upTo) * updateBarWidth / int(total)
		bar += c.OutScreen.ColourText(colour, strings.Repeat(sign, max(end-at, 0)))
		at = max(at, end)
	}
	add(done, "█", frame.Green)
	add(total-old-failed, "▓", frame.Yellow)
	add(total-old, "×", frame.Red)
	add(total, "░", frame.Dim)
	return fmt.Sprintf("%s  %d of %d", bar, done, total)
}

// maxServiceTasks bounds the tasks of a service that are listed with their job.
const maxServiceTasks = 50

// showServiceTasks lists the tasks of a service of several.
func showServiceTasks(c *frame.Invocation, s *scheddapi.JobStatus) error {
	if s.GetService() == nil || s.GetState() != "" || document.IsFinal(s) {
		return nil
	}
	tasks, _, err := c.QueryPool("", &scheddapi.QueryRequest{Tasks: true, Limit: maxServiceTasks,
		Selection: &scheddapi.Selection{Selectors: []string{s.GetId()}}})
	if err != nil {
		return err
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "TASK"}, {Head: "HEALTH"}, {Head: "SINCE"},
		{Head: "REVISION", RightAligned: true}, {Head: "RESTARTS", RightAligned: true}, {Head: "NODE"},
		{Head: "PORTS"}, {Head: "", MinWidth: 10}}}
	for _, one := range tasks {
		h := one.GetService()
		health, since := h.GetState(), h.GetSince()
		switch {
		case h.GetRestartAt() != 0:
			health, since = "restarts", h.GetRestartAt()
		case health == "":
			health, since = one.GetState(), 0
		}
		colour := frame.Yellow
		if health == "ready" {
			colour = frame.Green
		}
		t.AddRow(frame.TableCell{Text: one.GetId()}, frame.TableCell{Text: health, Colour: colour},
			frame.TableCell{Text: c.AgoText(since)}, frame.TableCell{Text: fmt.Sprint(h.GetRevision())},
			frame.TableCell{Text: fmt.Sprint(h.GetRestarts())}, frame.TableCell{Text: one.GetNode()},
			frame.TableCell{Text: portsText(one.GetPlaced())},
			frame.TableCell{Text: document.PrintableText(taskNote(one))})
	}
	io.WriteString(c.Stdout, "\n")
	t.DropEmptyColumns("NODE", "PORTS")
	t.Print(c.Stdout, c.OutScreen)
	if n := s.GetTasks(); n > maxServiceTasks {
		fmt.Fprintf(c.Stdout, "… and %d more: roost jobs --tasks %s\n", n-maxServiceTasks, s.GetId())
	}
	return nil
}

// taskNote is why a task is not ready, or what it waits for.
func taskNote(s *scheddapi.JobStatus) string {
	h := s.GetService()
	switch {
	case h.GetState() != "ready" && h.GetCheck() != "":
		return strings.TrimSuffix("check "+h.GetCheck()+": "+h.GetDetail(), ": ")
	case s.GetReason() == h.GetState():
		return ""
	}
	return s.GetReason()
}
