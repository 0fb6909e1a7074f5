package view

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// TaskList is a part of the tasks of a job, by index.
type TaskList struct {
	Version int            `json:"v"`
	Job     document.Job   `json:"job"`
	Tasks   []document.Job `json:"tasks"`
	Next    string         `json:"next,omitempty"` // index from which the next part begins

	Filter TaskFilter `json:"-"`
}

// TaskFilter is what the address of a list of tasks says.
type TaskFilter struct {
	States []string
	From   uint64 // index
	Limit  int
}

// Tasks shows the tasks of a job.
func Tasks(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	list, err := jobFilterOf(c)
	f := TaskFilter{States: list.States, Limit: list.Limit}
	if text := c.QueryValue("from"); err == nil && text != "" {
		if f.From, err = strconv.ParseUint(text, 10, 31); err != nil {
			err = fmt.Errorf("from: %w: it is the index of a task", roost.Invalid)
		}
	}
	if err != nil {
		return nil, err
	}
	status, err := findJob(c, id, false)
	if err != nil {
		return nil, err
	}
	l := TaskList{Version: document.Version, Job: document.JobOf(status, false), Tasks: []document.Job{}, Filter: f}
	if f.From > 0 && !status.GetArray() {
		return l, nil
	}
	query := &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{fromIndex(id, f.From)},
		States: f.States}, History: true, Tasks: true, Limit: uint32(f.Limit) + 1}
	missing, err := queryPool(c, &wire.PoolQuery{Query: query}, func(t *wire.JobStatus) error {
		if len(l.Tasks) == f.Limit {
			l.Next = strconv.FormatUint(uint64(t.GetIndex()), 10)
		} else {
			l.Tasks = append(l.Tasks, document.JobOf(t, true))
		}
		return nil
	})
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("job %s: %w: %s %s", id, roost.Unavailable, missing[0].Node, missing[0].Reason)
	}
	c.LinkNext("from", l.Next)
	return l, err
}

// fromIndex returns the selector of a job's tasks from an index on.
func fromIndex(id string, from uint64) string {
	if from == 0 {
		return id
	}
	number, host, dotted := strings.Cut(strings.Replace(id, "[]", "", 1), ".")
	selector := fmt.Sprintf("%s[%d-%d]", number, from, uint32(1<<31-1))
	if dotted {
		selector += "." + host
	}
	return selector
}

// StartEstimate is when a job is expected to start.
type StartEstimate struct {
	Version   int    `json:"v"`
	ID        string `json:"id"`
	Start     string `json:"start"`
	Certainty string `json:"certainty"`
	Basis     string `json:"basis"`
	Ahead     uint32 `json:"ahead"`
	Waiting   uint32 `json:"waiting"`
}

// When shows when a job or task is expected to start.
func When(c *route.Call) (any, error) {
	explained, err := Why(c)
	if err != nil {
		return nil, err
	}
	e := explained.(document.Explanation)
	return StartEstimate{document.Version, e.Job.ID, e.Start, e.Certainty, e.Basis, e.Ahead, e.Waiting}, nil
}

// Definition is what a job asks for, in full.
type Definition struct {
	Version  int             `json:"v"`
	Job      document.Job    `json:"job"`
	Ad       json.RawMessage `json:"ad"`                 // as HTCondor writes ClassAds in JSON
	Depends  []string        `json:"depends,omitempty"`  // what is left of its dependencies
	Discreet bool            `json:"discreet,omitempty"` // what only its owner may see is left out
	Text     string          `json:"-"`                  // the ad as text, one attribute a line
}

// ShowDefinition shows what a job asks for.
func ShowDefinition(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	s, err := findJob(c, id, true)
	if err != nil {
		return nil, err
	}
	d := Definition{Version: document.Version, Job: document.JobOf(s, isTaskID(id)), Depends: s.GetDepends(),
		Discreet: s.GetDiscreet()}
	ad, err := classad.Parse(s.GetAd())
	if err == nil {
		var lines strings.Builder
		for name, e := range ad.All() {
			fmt.Fprintf(&lines, "%s = %s\n", name, e)
		}
		d.Text = lines.String()
		d.Ad, err = ad.MarshalJSON()
	}
	if err != nil {
		return nil, fmt.Errorf("job %s: %w: its ad cannot be read: %w", id, roost.Internal, err)
	}
	return d, nil
}

// logPiece bounds what one request reads of an output.
const logPiece = 256 << 10

// LogPage is a piece of a task's output for a page.
type LogPage struct {
	Version int    `json:"v"`
	ID      string `json:"id"`
	Stream  string `json:"stream"`
	Offset  int64  `json:"offset"`
	Next    int64  `json:"next"` // offset behind the piece
	Text    string `json:"text"` // without escape sequences except those of colours
}

// LogText shows a piece of the output of a task as text.
func LogText(c *route.Call) (any, error) {
	r, err := logRequestOf(c)
	if err != nil {
		return nil, err
	}
	p := LogPage{Version: document.Version, ID: r.GetId(), Stream: c.PathValue("stream"), Offset: r.GetOffset()}
	r.Follow = false
	piece, from, err := readLogPiece(c, r, logPiece)
	p.Offset, p.Next, p.Text = from, from+int64(len(piece)), SafeText(string(piece))
	return p, err
}

// readLogPiece reads a piece of an output of at most so many bytes, and where it begins.
// That is behind the offset that was asked for if the output there is not kept any more.
func readLogPiece(c *route.Call, r *wire.LogsRequest, limit int) (piece []byte, from int64, err error) {
	from = r.GetOffset()
	err = readLog(c, r, func(data []byte, at int64) bool {
		if len(piece) == 0 {
			from = max(from, at)
		}
		piece = append(piece, data[:min(len(data), limit-len(piece))]...)
		return len(piece) < limit
	})
	return piece, from, err
}

// Log sends the output of a task as it is, for programs and for downloads. With follow=1
// it sends what is added until the task ends.
func Log(c *route.Call) error {
	r, err := logRequestOf(c)
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	begin := func() {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(logName(r.GetId(), c.PathValue("stream"))))
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	}
	if r.GetFollow() || c.QueryValue("whole") == "1" {
		return c.Stream(begin, func(write func([]byte) error) error {
			var werr error
			err := readLog(c, r, func(data []byte, _ int64) bool { werr = write(data); return werr == nil })
			if werr != nil {
				return werr
			}
			return err
		})
	}
	piece, from, err := readLogPiece(c, r, logPiece)
	if err != nil {
		return err
	}
	begin()
	h.Set("Roost-Next-Offset", strconv.FormatInt(from+int64(len(piece)), 10))
	h.Set("Content-Length", strconv.Itoa(len(piece)))
	c.Writer.Write(piece) // a client that has gone needs no answer
	return nil
}

func logName(id, stream string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(id) + "." + stream + ".txt"
}

// logRequestOf reads the path and the query of a request for an output.
func logRequestOf(c *route.Call) (*wire.LogsRequest, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	r := &wire.LogsRequest{Id: id, Follow: c.QueryValue("follow") == "1"}
	switch c.PathValue("stream") {
	case "out":
	case "err":
		r.Stderr = true
	default:
		return nil, fmt.Errorf("log: %w: there are out and err", roost.NotFound)
	}
	var attempt int64
	for name, to := range map[string]*int64{"offset": &r.Offset, "tail": &r.Tail, "attempt": &attempt} {
		text := c.QueryValue(name)
		if text == "" {
			continue
		}
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 0 {
			return nil, fmt.Errorf("%s: %w: it is a whole number", name, roost.Invalid)
		}
	}
	if attempt > math.MaxInt32 {
		return nil, fmt.Errorf("attempt: %w: there is none of this number", roost.Invalid)
	}
	r.Attempt = uint32(attempt)
	return r, nil
}

// readLog calls f with pieces of an output, and where they begin, until f returns false.
func readLog(c *route.Call, r *wire.LogsRequest, f func(data []byte, at int64) bool) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	return ask(c, func(_ context.Context, s wire.ScheddClient) error {
		stream, err := s.Logs(ctx, r)
		enough := false
		err = drain(stream, err, func(chunk *wire.LogChunk) error {
			if enough = !f(chunk.GetData(), chunk.GetOffset()); enough {
				return errEnough
			}
			return nil
		})
		if enough {
			return nil
		}
		return err
	})
}

// errEnough ends a stream early.
var errEnough = fmt.Errorf("%w: enough was read", roost.Internal)
