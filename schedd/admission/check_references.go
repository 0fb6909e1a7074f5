package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job that names what is not there would wait for ever, or be charged to nobody, and
// its user would learn of it tomorrow. So what is known not to be there is refused at
// once. Where no leader has said what there is the job is taken.

// CheckReferences refuses jobs that name a group, a reservation or a limit that is not
// there.
func CheckReferences(p *wire.Policy, specs []queue.SubmitSpec) error {
	for i := range specs {
		if err := checkJobReferences(p, &specs[i]); err != nil {
			return JobOrdinal(err, i, specs)
		}
	}
	return nil
}

// JobOrdinal says which job of a submission is meant, if there are several.
func JobOrdinal(err error, i int, specs []queue.SubmitSpec) error {
	if len(specs) > 1 {
		err = fmt.Errorf("job %d of the submission: %w", i, err)
	}
	return err
}

func checkJobReferences(p *wire.Policy, spec *queue.SubmitSpec) error {
	if name, _ := spec.Ad.Str(roost.AttrReservation); name != "" && p.GetReservations() != nil {
		if known := p.GetReservations().GetName(); !slices.Contains(known, name) {
			return notFoundError("reservation", name, known)
		}
	}
	if name, _ := spec.Ad.Str(roost.AttrQueue); undefinedQueue(p, name) {
		return notFoundError("queue", name, []string{roost.DefaultQueueName})
	}
	// As long as nobody has made any, these are words that mean nothing, and jobs that
	// were written for another pool may have them.
	if known := p.GetGroups().GetName(); len(known) > 0 {
		if name, _ := spec.Ad.Str(roost.AttrGroup); name != "" && !slices.Contains(known, name) {
			return notFoundError("group", name, known)
		}
	}
	// A job of qsub is PBS's: there a resource that nobody has made is unknown, also as
	// long as nobody has made any.
	_, ofPBS := spec.Ad.Sub(roost.AttrPBS)
	if known := p.GetLimits().GetName(); len(known) > 0 || ofPBS && p.GetLimits() != nil {
		text, _ := spec.Ad.Str(roost.AttrLimits)
		all, _ := roost.ParseLimitRequests(text) // of one that makes no sense the queue says so
		for _, l := range all {
			if !slices.Contains(known, l.Name) {
				return notFoundError("limit", l.Name, known)
			}
		}
	}
	return nil
}

// undefinedQueue reports whether a job names a queue in a pool that defines no queues.
// Such a pool has the default queue and no other.
func undefinedQueue(p *wire.Policy, name string) bool {
	return name != "" && name != roost.DefaultQueueName && len(p.GetQueues()) == 0 && p.GetReservations() != nil &&
		!isReservationName(p, name)
}

// maxShownNames is how many names are shown to somebody who has mistaken one.
const maxShownNames = 20

// notFoundError says that there is nothing of that name, which may have been meant, and
// what there is.
func notFoundError(what, name string, known []string) error {
	meant, all := "", "there are none"
	if near := suggest.Nearest(name, known); near != "" {
		meant = fmt.Sprintf(" (did you mean %q?)", near)
	}
	if shown := known[:min(len(known), maxShownNames)]; len(shown) > 0 {
		all = "there are " + strings.Join(shown, ", ")
	}
	if more := len(known) - maxShownNames; more > 0 {
		all += fmt.Sprintf(", and %d more, which roost %s lists", more, what)
	}
	return fmt.Errorf("%s %.80s: %w: there is no such %s%s; %s", what, name, roost.NotFound, what, meant, all)
}
