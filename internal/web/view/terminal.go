package view

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// TerminalPage is the page of a terminal in a task.
type TerminalPage struct {
	Job     document.Job
	ID      string // as it was asked for
	IsOpen  bool   // a terminal can be opened
	Command string // that does the same
}

// ShowTerminal shows the page of a terminal. Whether its user may enter the task, the
// schedd decides when it is opened.
func ShowTerminal(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	s, err := findJob(c, id, false)
	if err != nil {
		return nil, err
	}
	j := document.JobOf(s, isTaskID(id))
	isOwn := j.Owner == c.Session.User || c.Session.User == "root"
	isTask := isTaskID(id) || !j.Array && j.Tasks <= 1
	return TerminalPage{Job: j, ID: id, IsOpen: isTask && j.State == roost.Running.String() && isOwn,
		Command: "roost ssh " + id}, nil
}
