package queue

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
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
	MaxOfUser int                                          // tasks of one user; 0 for no limit but those of all
	Domain    string                                       // the schedd's own FileSystemDomain
	Key       func(key string) []roost.JobID               // the jobs that a key made and that are in the history
	Past      func(seq uint64) (ok, succeeded, known bool) // how a job in the history ended
	Secret    func() []byte                                // makes that of the keys of a job's images, SecretSize random bytes; nil: no images are taken
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
		e, err := q.submission(now, who, &specs[part], &relating{Queue: q, who: who, seq: seq + uint64(part) + 1, part: part, earlier: events, limits: limits})
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
	if err := q.checkOpen(who, total-q.tasks, limits); err != nil {
		return nil, nil, false, err
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
		if plant.Is(plant.KeyForgotten) && q.jobs[seq].began != 0 {
			continue
		}
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	if limits.Key != nil {
		ids = append(ids, limits.Key(key)...)
	}
	slices.SortFunc(ids, roost.JobID.Compare)
	return slices.Compact(ids)
}

// submission checks one job and makes the event that takes it in.
func (q *Queue) submission(now time.Time, who Submitter, spec *Spec, r *relating) (Event, error) {
	seq, limits := r.seq, r.limits
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
	if err := checkIndexes(ad, spec.Count/p.stride()); err != nil {
		return Event{}, err
	}
	if p.interactive && spec.Count > 1 && !p.led {
		return Event{}, fmt.Errorf("attribute %s: %w: a job with a terminal has one task, and this one has %d", roost.AttrInteractive, roost.Invalid, spec.Count)
	}
	r.lenient = p.pbs
	waits, err := r.waits(ad)
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
