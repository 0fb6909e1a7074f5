package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Submitter is who asks, as the kernel says.
type Submitter struct {
	User     string
	UID, GID uint32
	Host     string
	Admin    bool // root, or the schedd's own user: may touch everybody's jobs
}

// Limits bound what a queue takes, and answer for jobs that have left it.
type Limits struct {
	MaxQueued int                                          // tasks of all users; 0 for no limit
	Domain    string                                       // the schedd's own FileSystemDomain
	Key       func(key string) []roost.JobID               // the jobs that a key made and that are in the history
	Past      func(seq uint64) (ok, succeeded, known bool) // how a job in the history ended
	Secret    func() []byte                                // makes the key of a job's images, 32 random bytes; nil: no images are taken
	LastSeq   uint64                                       // the highest number that the history knows

	Impossible error // why no machine could ever run these jobs, nil if one might; a key that was taken before is answered all the same
}

// Submit decides on new jobs: all of them, or none. The same key again gives the ids that it gave before.
func (q *Queue) Submit(now time.Time, who Submitter, key string, specs []Spec, limits Limits) (events []Event, ids []roost.JobID, repeated bool, err error) {
	if key == "" || len(key) > 256 {
		return nil, nil, false, fmt.Errorf("submit key: %w: it has %d bytes, and 1 to 256 are wanted", roost.Invalid, len(key))
	}
	key = submissionKey(who, key)
	if ids := q.byKeyAll(key, limits); len(ids) > 0 {
		return nil, ids, true, nil
	}
	if len(specs) == 0 {
		return nil, nil, false, fmt.Errorf("%w: there is no job in the submission", roost.Invalid)
	}
	if limits.Impossible != nil {
		return nil, nil, false, limits.Impossible
	}
	total := q.tasks
	seq := max(q.lastSeq, limits.LastSeq)
	for part := range specs {
		e, err := q.submission(now, who, &specs[part], seq+uint64(part)+1, part, limits)
		if err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", part, err)
			}
			return nil, nil, false, err
		}
		e.Submission.Key, e.Submission.Part, e.Submission.Parts = key, part, len(specs)
		events = append(events, e)
		ids = append(ids, roost.JobID{Seq: e.Job, Host: q.host})
		total += specs[part].Count
	}
	if limits.MaxQueued > 0 && total > limits.MaxQueued {
		return nil, nil, false, fmt.Errorf("%w: %d tasks are queued, these would make %d, and this schedd takes %d", roost.Exhausted, q.tasks, total, limits.MaxQueued)
	}
	return events, ids, false, nil
}

// submissionKey makes of a user's key one that nobody else's is.
func submissionKey(who Submitter, key string) string {
	return strconv.FormatUint(uint64(who.UID), 10) + ":" + key
}

// byKeyAll lists all jobs of a submission, wherever they are now.
func (q *Queue) byKeyAll(key string, limits Limits) (ids []roost.JobID) {
	for _, seq := range q.keys[key] {
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	if limits.Key != nil {
		ids = append(ids, limits.Key(key)...)
	}
	slices.SortFunc(ids, roost.JobID.Compare)
	return slices.Compact(ids)
}

// submission checks one job and makes the event that takes it in.
func (q *Queue) submission(now time.Time, who Submitter, spec *Spec, seq uint64, part int, limits Limits) (Event, error) {
	if spec.Count < 1 || spec.Count > roost.MaxTasks {
		return Event{}, fmt.Errorf("%w: %d tasks, and 1 to %d are possible", roost.Exhausted, spec.Count, roost.MaxTasks)
	}
	if err := checkColumns(spec.Columns, spec.Count); err != nil {
		return Event{}, err
	}
	ad := spec.Ad.Copy()
	ad.SetString(roost.AttrJobID, roost.JobID{Seq: seq, Host: q.host}.String())
	ad.SetString(roost.AttrOwner, who.User)
	ad.SetInt(roost.AttrOwnerUID, int64(who.UID))
	ad.SetInt(roost.AttrOwnerGID, int64(who.GID))
	ad.SetInt(roost.AttrQDate, now.Unix())
	ad.SetInt(roost.AttrTaskCount, int64(spec.Count))
	ad.SetString(roost.AttrSubmitHost, q.host)
	if _, ok := ad.Lookup(roost.AttrFileSystemDomain); !ok && limits.Domain != "" {
		ad.SetString(roost.AttrFileSystemDomain, limits.Domain)
	}
	if _, ok := ad.Lookup(attrArray); !ok && spec.Count > 1 {
		ad.SetBool(attrArray, true)
	}
	p, err := readPlan(ad)
	if err != nil {
		return Event{}, err
	}
	if err := checkOverrides(p, spec.Columns); err != nil {
		return Event{}, err
	}
	if err := checkGang(&p, spec); err != nil {
		return Event{}, err
	}
	if err := checkIndexes(ad, spec.Count); err != nil {
		return Event{}, err
	}
	if p.interactive && spec.Count > 1 && !p.led {
		return Event{}, fmt.Errorf("attribute %s: %w: a job with a terminal has one task, and this one has %d", roost.AttrInteractive, roost.Invalid, spec.Count)
	}
	waits, err := q.waits(ad, seq, part, limits)
	if err != nil {
		return Event{}, err
	}
	text := ad.String()
	if len(text) > roost.MaxAdBytes {
		return Event{}, fmt.Errorf("%w: the job's ad has %d bytes, and %d is the most", roost.Exhausted, len(text), roost.MaxAdBytes)
	}
	var secret []byte
	if p.saving != nil && limits.Secret != nil {
		secret = limits.Secret()
	}
	return Event{What: Submitted, Time: now.UnixNano(), Job: seq, Submission: &Submission{
		Secret: secret, Owner: who.User, UID: who.UID, GID: who.GID, Ad: text, Count: spec.Count, Columns: spec.Columns, Waits: waits, Unasked: spec.Unasked,
	}}, nil
}

// maxClasses bounds into how many requests a job's tasks may fall.
const maxClasses = 10_000

// checkOverrides tries every different value of the columns that override an attribute.
func checkOverrides(p plan, columns []Column) error {
	kinds := 1
	for _, c := range columns {
		if !slices.Contains(overriding, c.Name) {
			continue
		}
		seen := map[string]bool{}
		for i, v := range c.Values {
			if seen[v] {
				continue
			}
			seen[v] = true
			if err := p.override(c.Name, v); err != nil {
				return fmt.Errorf("task %d: %w", i, err)
			}
		}
		if kinds *= len(seen); kinds > maxClasses {
			return fmt.Errorf("%w: the tasks differ in more than %d ways in what they ask of a machine", roost.Exhausted, maxClasses)
		}
	}
	return nil
}

// waits resolves DependsOn: what has come already is left out, and what cannot come any more is an error.
func (q *Queue) waits(ad *classad.Ad, seq uint64, part int, limits Limits) ([]Wait, error) {
	if _, ok := ad.Lookup(roost.AttrDependsOn); !ok {
		return nil, nil
	}
	list, ok := ad.Strings(roost.AttrDependsOn)
	if !ok {
		return nil, fmt.Errorf("attribute %s: %w: a list of strings such as \"afterok:12\" is wanted", roost.AttrDependsOn, roost.Invalid)
	}
	var waits []Wait
	for _, text := range list {
		kind, target, found := strings.Cut(text, ":")
		if !found {
			kind, target = AfterOK.String(), text
		}
		w := Wait{}
		var err error
		if w.Type, err = ParseWaitType(kind); err != nil {
			return nil, err
		}
		if back, ok := strings.CutPrefix(target, "@"); ok {
			n, err := strconv.Atoi(back)
			if err != nil || n < 0 || n >= part {
				return nil, fmt.Errorf("dependency %q: %w: only an earlier job of the same submission can be meant so", text, roost.Invalid)
			}
			w.Job = seq - uint64(part-n)
			waits = append(waits, w)
			continue
		}
		id, err := roost.ParseJobID(target, q.host)
		if err != nil || id.Host != q.host {
			return nil, fmt.Errorf("dependency %q: %w: it names no job of this schedd", text, roost.Invalid)
		}
		w.Job = id.Seq
		met, dead, err := q.resolve(w, limits)
		switch {
		case err != nil:
			return nil, fmt.Errorf("dependency %q: %w", text, err)
		case dead:
			return nil, fmt.Errorf("dependency %q: %w: that job has ended otherwise already, so this one would never run", text, roost.Conflict)
		case !met:
			waits = append(waits, w)
		}
	}
	return waits, nil
}

// resolve says how a dependency stands: met, or dead, or neither yet.
func (q *Queue) resolve(w Wait, limits Limits) (met, dead bool, err error) {
	var final, ok, begun bool
	if j := q.jobs[w.Job]; j != nil {
		final = j.final()
		ok = j.counts[roost.Completed] == len(j.state) && j.failed == 0
		begun = final || j.active > 0 || j.counts[roost.Completed] > 0
	} else if limits.Past != nil {
		past, succeeded, known := limits.Past(w.Job)
		if !known || !past {
			return false, false, fmt.Errorf("%w: there is no job %d", roost.NotFound, w.Job)
		}
		final, ok, begun = true, succeeded, true
	} else {
		return false, false, fmt.Errorf("%w: there is no job %d", roost.NotFound, w.Job)
	}
	switch w.Type {
	case After:
		return begun, false, nil
	case AfterAny:
		return final, false, nil
	case AfterOK:
		return final && ok, final && !ok, nil
	default:
		return final && !ok, final && ok, nil
	}
}

// Consequences decides what follows for jobs that wait for others or for their time: they are unblocked, or dropped when what they wait for
// cannot come any more. Asking twice is harmless.
func (q *Queue) Consequences(now time.Time) (events []Event) {
	for seq := range q.timed {
		if now.Unix() >= q.jobs[seq].plan.startAfter {
			q.ripe[seq] = true
		}
	}
	for _, seq := range drain(&q.ripe) {
		if j := q.jobs[seq]; j != nil && !j.final() {
			events = append(events, q.consequence(now, j)...)
		}
	}
	return events
}

func (q *Queue) consequence(now time.Time, j *job) []Event {
	open := 0
	for _, w := range j.waits {
		// A job that has left the queue was final when it did, and its dependants were ripe before that.
		met, dead, err := q.resolve(w, Limits{})
		switch {
		case dead || err != nil:
			return []Event{{What: Dropped, Time: now.UnixNano(), Job: j.seq,
				Reason: fmt.Sprintf("it was to run %v job %d, and that has ended otherwise", w.Type, w.Job)}}
		case !met:
			open++
		}
	}
	if open == 0 && now.Unix() >= j.plan.startAfter && j.blocked() {
		return []Event{{What: Unblocked, Time: now.UnixNano(), Job: j.seq}}
	}
	return nil
}
