package query

import (
	"encoding/json"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// SourceLine is how the accountant follows one schedd.
type SourceLine struct {
	Host     string            `json:"host"`
	Source   string            `json:"source,omitempty"`
	Next     uint64            `json:"next"`               // number of the next entry
	Complete accounting.Millis `json:"complete,omitempty"` // all before it is stored
	Skew     int64             `json:"skew_ms,omitempty"`
	Gaps     int               `json:"gaps"`            // that are not filled
	Ingested int64             `json:"ingested"`        // entries since the accountant was started
	Refused  int64             `json:"refused"`         // entries since then that made no sense
	Error    string            `json:"error,omitempty"` // why the feed cannot be read now
}

// AttemptLine is an attempt with its job, or says why attempts that run are missing.
type AttemptLine struct {
	Job     accounting.JobEntry     `json:"job"`
	Attempt accounting.AttemptEntry `json:"attempt"`
	Missing string                  `json:"missing,omitempty"`
}

// Now is what the accountant knows beyond what is stored.
type Now struct {
	Sources []SourceLine                     // how it follows each schedd
	Live    func(waiting bool) *LiveAttempts // what runs, and what waits if wanted
}

// UsageLine is a line of the report usage.
type UsageLine struct {
	Owner   string `json:"owner,omitempty"`
	Group   string `json:"group,omitempty"`
	Project string `json:"project,omitempty"`
	Queue   string `json:"queue,omitempty"`
	Band    string `json:"band,omitempty"`
	accounting.Amounts
}

// Answer answers a question. It calls emit with each line, which is JSON.
func (q *Query) Answer(r accounting.Reader, p accounting.Reporter, now *Now, emit func(line []byte) error) error {
	filter, err := q.filter()
	if err != nil {
		return err
	}
	switch q.Report {
	case Attempts:
		return q.attempts(r, filter, now, emit)
	case Timeline, Bands:
		return q.timeline(p, filter, emit)
	case Waste:
		return q.waste(r, filter, emit)
	case Windows:
		return q.windows(r, filter, emit)
	case Hours:
		return q.hours(r, filter, emit)
	case Machines:
		return q.machines(r, emit)
	case Jobs:
		return q.jobs(r, filter, emit)
	case Usage:
		return q.usage(p, filter, emit)
	case Sources:
		return q.sources(p, now.Sources, emit)
	case Ends:
		lines, err := p.EndLines(q.timeRange(), q.Owner, len(q.By) > 0)
		return emitAll(lines, err, q.limit(), emit)
	case Waits:
		lines, err := p.WaitLines(q.timeRange())
		return emitAll(lines, err, q.limit(), emit)
	case Sizes:
		lines, err := p.SizeLines(q.timeRange())
		return emitAll(lines, err, q.limit(), emit)
	case Capacity:
		lines, err := p.CapacityLines(q.timeRange(), len(q.By) > 0)
		return emitAll(lines, err, q.limit(), emit)
	case Efficiency:
		lines, err := p.Efficiency(q.timeRange(), filter, q.limit())
		return emitAll(lines, err, q.limit(), emit)
	case Statements:
		return q.statements(p, emit)
	case Reconcile:
		return q.reconcile(p, emit)
	case Rates, Adjustments, Budgets, Months:
		return q.sumsOf(p, emit)
	}
	return fmt.Errorf("report %.40q: %w", q.Report, roost.Invalid)
}

// emitAll emits each of the lines, and a notice in place of those above the limit.
func emitAll[T any](lines []T, err error, limit int, emit func(line []byte) error) error {
	for i := range lines {
		if err != nil || i == limit {
			break
		}
		err = emitLine(&lines[i], emit)
	}
	return err
}

func emitLine(v any, emit func(line []byte) error) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return emit(line)
}

func (q *Query) usage(p accounting.Reporter, filter accounting.Filter, emit func(line []byte) error) error {
	by, err := q.groupBy()
	if err != nil {
		return err
	}
	found, err := p.UsageLines(accounting.UsageQuery{Range: q.timeRange(), By: by, Filter: filter, WholeAtEnd: q.ByEnd})
	lines := make([]UsageLine, 0, len(found))
	for i := range found {
		l := UsageLine{Owner: found[i].Owner, Group: found[i].Group, Project: found[i].Project, Queue: found[i].Queue,
			Amounts: found[i].Amounts}
		if by&accounting.ByBand != 0 {
			l.Band = found[i].Band.String()
		}
		lines = append(lines, l)
	}
	return emitAll(lines, err, q.limit(), emit)
}

// job returns the job of the question, if the filter lets it pass.
func (q *Query) job(r accounting.Reader, filter accounting.Filter) (accounting.JobEntry, error) {
	job, err := r.Job(q.Host, q.Job)
	if err == nil && !filter.MatchesJob(&job) {
		err = fmt.Errorf("job %v: %w", roost.JobID{Seq: q.Job, Host: q.Host}, roost.NotFound)
	}
	return job, err
}

// jobs emits the jobs that were submitted in the range.
func (q *Query) jobs(r accounting.Reader, filter accounting.Filter, emit func(line []byte) error) error {
	for j, err := range r.Jobs(accounting.Selection{Range: q.timeRange(), By: accounting.BySubmit, Filter: filter,
		Limit: q.limit()}) {
		if err == nil {
			err = emitLine(&j, emit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sources emits a line for each schedd: what the store says of it, and how it is
// followed now.
func (q *Query) sources(p accounting.Reporter, following []SourceLine, emit func(line []byte) error) error {
	stored, err := p.Sources()
	lines := make([]SourceLine, 0, len(stored))
	followed := map[string]SourceLine{}
	for _, l := range following {
		followed[l.Host] = l
	}
	for i := range stored {
		s := &stored[i]
		l := followed[s.Host]
		delete(followed, s.Host)
		l.Host, l.Source, l.Next, l.Complete, l.Skew, l.Gaps = s.Host, s.Source.String(), s.Next, s.Watermark, s.Skew,
			len(s.Gaps)
		lines = append(lines, l)
	}
	for _, l := range following {
		if _, only := followed[l.Host]; only {
			lines = append(lines, l)
		}
	}
	return emitAll(lines, err, q.limit(), emit)
}
