package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Submitter is who asks, as the kernel says. Nothing in a message is believed about it.
type Submitter struct {
	User     string
	UID, GID uint32
	Host     string
	Admin    bool // root, or the schedd's own user: may touch everybody's jobs
}

// Spec is a job as it is to be submitted.
type Spec struct {
	Ad      *classad.Ad
	Count   int
	Columns []Column
}

// Limits bound what a queue takes, and answer for jobs that have left it.
type Limits struct {
	MaxQueued int                                            // tasks of all users that are not final; 0 for no limit
	Domain    string                                         // the FileSystemDomain of this host
	Key       func(key string) []roost.JobID                 // the jobs in the history that a key (as in Submission.Key) made
	Past      func(seq uint64) (succeeded, started, ok bool) // how a job in the history ended
}

// maxKey bounds a submit key, in bytes.
const maxKey = 256

// Submit decides on new jobs: all, or none. The same key of the same user again gives the ids that it gave before.
func (q *Queue) Submit(now time.Time, who Submitter, key string, specs []Spec, limits Limits) (events []Event, ids []roost.JobID, repeated bool, err error) {
	if key == "" || len(key) > maxKey {
		return nil, nil, false, fmt.Errorf("submit key: %w: it has to have 1 to %d bytes, and has %d", roost.Invalid, maxKey, len(key))
	}
	key = strconv.FormatUint(uint64(who.UID), 10) + ":" + key
	if ids := q.ids(q.keys[key]); len(ids) > 0 {
		return nil, ids, true, nil
	}
	if limits.Key != nil {
		if ids := limits.Key(key); len(ids) > 0 {
			return nil, ids, true, nil
		}
	}
	if len(specs) == 0 {
		return nil, nil, false, fmt.Errorf("submission: %w: it holds no job", roost.Invalid)
	}
	total := q.tasks
	for part := range specs {
		s, err := q.submission(now, who, &specs[part], part, limits)
		if err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", part, err)
			}
			return nil, nil, false, err
		}
		s.Key, s.Part, s.Parts = key, part, len(specs)
		seq := q.lastSeq + 1 + uint64(part)
		events = append(events, Event{What: Submitted, Time: now.UnixNano(), Job: seq, Submission: s})
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
		total += s.Count
	}
	if limits.MaxQueued > 0 && total > limits.MaxQueued {
		return nil, nil, false, fmt.Errorf("submission: %w: %d tasks are queued, this would make %d, and %d are allowed", roost.Exhausted, q.tasks, total, limits.MaxQueued)
	}
	return events, ids, false, nil
}

// submission checks one job and makes it what is kept.
func (q *Queue) submission(now time.Time, who Submitter, spec *Spec, part int, limits Limits) (*Submission, error) {
	if spec.Ad == nil {
		return nil, fmt.Errorf("ad: %w: there is none", roost.Invalid)
	}
	if spec.Count < 1 || spec.Count > roost.MaxTasks {
		return nil, fmt.Errorf("count: %w: a job has 1 to %d tasks, not %d", roost.Invalid, roost.MaxTasks, spec.Count)
	}
	columns, err := checkColumns(spec)
	if err != nil {
		return nil, err
	}
	p, err := readPlan(spec.Ad, spec.Count)
	if err != nil {
		return nil, err
	}
	if _, _, err := classes(&p, spec.Count, columns); err != nil {
		return nil, err
	}
	waits, err := q.waits(spec.Ad, part, limits)
	if err != nil {
		return nil, err
	}
	ad := spec.Ad.Copy()
	seq := q.lastSeq + 1 + uint64(part)
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrJobID, roost.JobID{Seq: seq, Host: q.host}.String())
	ad.SetString(roost.AttrOwner, who.User)
	ad.SetInt(roost.AttrOwnerUID, int64(who.UID))
	ad.SetInt(roost.AttrOwnerGID, int64(who.GID))
	ad.SetString(roost.AttrSubmitHost, who.Host)
	ad.SetInt(roost.AttrQDate, now.Unix())
	ad.SetInt(roost.AttrTaskCount, int64(spec.Count))
	ad.SetString(roost.AttrBand, p.band.String())
	if _, ok := ad.Lookup(roost.AttrFileSystemDomain); !ok && limits.Domain != "" {
		ad.SetString(roost.AttrFileSystemDomain, limits.Domain)
	}
	text := ad.String()
	if len(text) > roost.MaxAdBytes {
		return nil, fmt.Errorf("ad: %w: it has %d bytes, and %d are allowed", roost.Exhausted, len(text), roost.MaxAdBytes)
	}
	if err := checkTemplates(ad, columns); err != nil {
		return nil, err
	}
	return &Submission{Owner: who.User, UID: who.UID, GID: who.GID, Ad: text, Count: spec.Count, Columns: spec.Columns, Waits: waits}, nil
}

func checkColumns(spec *Spec) ([]packed, error) {
	if len(spec.Columns) > roost.MaxColumns {
		return nil, fmt.Errorf("columns: %w: there are %d, and %d are allowed", roost.Exhausted, len(spec.Columns), roost.MaxColumns)
	}
	seen, size := map[string]bool{}, 0
	out := make([]packed, 0, len(spec.Columns))
	for _, c := range spec.Columns {
		name := strings.ToLower(c.Name)
		switch {
		case name == "" || len(name) > 256 || strings.ContainsAny(name, "()$"):
			return nil, fmt.Errorf("column %q: %w: that is no name", c.Name, roost.Invalid)
		case seen[name] || builtin(name):
			return nil, fmt.Errorf("column %s: %w: the name is taken", c.Name, roost.Invalid)
		case len(c.Values) != spec.Count:
			return nil, fmt.Errorf("column %s: %w: it has %d values for %d tasks", c.Name, roost.Invalid, len(c.Values), spec.Count)
		}
		seen[name] = true
		for _, v := range c.Values {
			size += len(v)
		}
		if size > maxColumnBytes {
			return nil, fmt.Errorf("columns: %w: their values have more than %d bytes", roost.Exhausted, maxColumnBytes)
		}
		out = append(out, pack(c))
	}
	return out, nil
}

// maxColumnBytes bounds the values of all columns of a job together.
const maxColumnBytes = 1 << 30

// waits reads the dependencies of a job, and drops those that are met already.
func (q *Queue) waits(ad *classad.Ad, part int, limits Limits) ([]Wait, error) {
	if _, ok := ad.Lookup(roost.AttrDependsOn); !ok {
		return nil, nil
	}
	list, ok := ad.Strings(roost.AttrDependsOn)
	if !ok {
		return nil, fmt.Errorf("%s: %w: it is not a list of strings", roost.AttrDependsOn, roost.Invalid)
	}
	var waits []Wait
	for _, text := range list {
		w, met, err := q.wait(text, part, limits)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", roost.AttrDependsOn, text, err)
		}
		if !met {
			waits = append(waits, w)
		}
	}
	return waits, nil
}

func (q *Queue) wait(text string, part int, limits Limits) (w Wait, met bool, err error) {
	w.Type = AfterOK
	id := text
	if kind, rest, ok := strings.Cut(text, ":"); ok {
		if w.Type, err = ParseWaitType(kind); err != nil {
			return w, false, err
		}
		id = rest
	}
	if earlier, ok := strings.CutPrefix(id, "@"); ok {
		k, err := strconv.Atoi(earlier)
		if err != nil || k < 0 || k >= part {
			return w, false, fmt.Errorf("%w: it has to name an earlier job of the same submission", roost.Invalid)
		}
		w.Job = q.lastSeq + 1 + uint64(k)
		return w, false, nil
	}
	parent, err := roost.ParseJobID(id, q.host)
	if err != nil {
		return w, false, fmt.Errorf("%w: %w", roost.Invalid, err)
	}
	if parent.Host != q.host {
		return w, false, fmt.Errorf("%w: jobs of other hosts cannot be waited for", roost.Invalid)
	}
	w.Job = parent.Seq
	var f fate
	if j := q.jobs[w.Job]; j != nil {
		f = fateOf(j)
	} else if ok := limits.Past != nil; ok {
		if f.succeeded, f.started, ok = limits.Past(w.Job); !ok {
			return w, false, fmt.Errorf("%w: there is no such job", roost.NotFound)
		}
		f.final = true
	} else {
		return w, false, fmt.Errorf("%w: there is no such job", roost.NotFound)
	}
	met, never := w.Type.judge(f)
	if never {
		return w, false, fmt.Errorf("%w: that can never come: %v has ended", roost.Conflict, parent)
	}
	return w, met, nil
}

// fate is what dependants want to know of a job.
type fate struct{ final, succeeded, started bool }

func fateOf(j *job) fate { return fate{j.final(), j.succeeded(), j.started != 0} }

// judge says whether a dependency is met, or never will be.
func (t WaitType) judge(f fate) (met, never bool) {
	switch t {
	case AfterOK:
		met = f.final && f.succeeded
	case AfterNotOK:
		met = f.final && !f.succeeded
	case AfterAny:
		met = f.final
	case After:
		met = f.started
	}
	return met, f.final && !met
}
