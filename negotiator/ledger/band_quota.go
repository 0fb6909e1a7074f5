package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// BandQuota bounds how much of a band the jobs of a user or group may request (Borg
// §2.5). The negotiator checks it when a job is submitted. For the bands that can evict
// others it checks again when tasks start, against what runs then. A lower quota evicts
// nothing. A quota with a period replaces the one without while the period lasts. The
// free band needs no quota.
type BandQuota struct {
	// a user name, or EachUser for every user without a quota of their own
	User  string         `json:"user,omitempty"`
	Group string         `json:"group,omitempty"` // bounds all jobs of the group and of its subgroups together
	Band  string         `json:"band"`
	Max   ResourceBounds `json:"most"`
	Period
}

// EachUser denotes every user without a quota of their own.
const EachUser = "each"

func (q BandQuota) name() string {
	who := "user/" + q.User
	if q.Group != "" {
		who = "group/" + q.Group
	}
	switch {
	case !q.isBounded():
		return who + "/" + q.Band
	case q.From.IsZero():
		return who + "/" + q.Band + "/now"
	}
	return who + "/" + q.Band + "/" + timeText(q.From)
}

func (q BandQuota) users() []string {
	if q.User == "" || q.User == EachUser {
		return nil
	}
	return []string{q.User}
}

func (q BandQuota) groups() []string { return groupOrNone(q.Group) }

func (q BandQuota) check(l *Ledger) error {
	switch {
	case q.User != "" && q.Group != "":
		return exclusiveFieldsError("a user", "a group")
	case q.User == "" && q.Group == "":
		return errors.New("it names neither a user nor a group")
	case q.User != "":
		if err := checkAccountName("a user", q.User); err != nil {
			return err
		}
	}
	band, err := roost.ParsePriorityBand(q.Band)
	if err != nil {
		return err
	}
	if band == roost.FreeBand {
		return errors.New("the free band needs no quota, as what it gets is left over: set one for batch, production " +
			"or monitoring")
	}
	if err := q.Period.check(l.clockTime()); err != nil {
		return err
	}
	if err := q.Max.check(); err != nil {
		return err
	}
	for o := range objectValues[BandQuota](l, KindQuota) {
		if err := q.checkNoConflict(o); err != nil {
			return err
		}
	}
	return nil
}

// checkNoConflict refuses q if another quota contradicts it.
func (q BandQuota) checkNoConflict(o BandQuota) error {
	if o.name() == q.name() || o.Band != q.Band || !o.overlaps(q.Period) {
		return nil
	}
	if o.User == q.User && o.Group == q.Group {
		if o.isBounded() && q.isBounded() {
			return fmt.Errorf("there is one %s already, and the two overlap: let one end where the other begins",
				o.Period.Text())
		}
		return nil // the one with a period replaces the other
	}
	small, large := q, o
	if groupLiesIn(o.Group, q.Group) {
		small, large = o, q
	} else if !groupLiesIn(q.Group, o.Group) {
		return nil
	}
	if small.isBounded() != large.isBounded() {
		return nil // they may be intended for different times
	}
	if name, has, may, over := small.Max.firstAbove(large.Max); over && has != "no bound" {
		return fmt.Errorf("group %s would have %s %s of %s, and group %s, in which it lies, has %s: it could "+
			"never use them",
			small.Group, has, name, q.Band, large.Group, may)
	}
	return nil
}

// groupLiesIn reports whether group is a subgroup of other, at any depth.
func groupLiesIn(group, other string) bool { return other != "" && strings.HasPrefix(group, other+".") }

// Quotas lists all quotas by name.
func (l *Ledger) Quotas() []BandQuota { return slices.Collect(objectValues[BandQuota](l, KindQuota)) }

// QuotasFor lists the quotas in force at t for a user, group and band. The user's own
// quota, or that of each user, comes first, then those of the group and of its ancestors.
// The group may be empty.
func (l *Ledger) QuotasFor(t time.Time, user, group string, band roost.PriorityBand) []BandQuota {
	var all []BandQuota
	own, found := l.quotaInForce(t, BandQuota{User: user, Band: band.String()})
	if !found {
		own, found = l.quotaInForce(t, BandQuota{User: EachUser, Band: band.String()})
	}
	if found {
		all = append(all, own)
	}
	for ; group != ""; group = (AccountingGroup{Name: group}).Parent() {
		if q, ok := l.quotaInForce(t, BandQuota{Group: group, Band: band.String()}); ok {
			all = append(all, q)
		}
	}
	return all
}

// quotaInForce returns the quota at t of the same user or group and band. A quota with a
// period takes precedence.
func (l *Ledger) quotaInForce(t time.Time, like BandQuota) (BandQuota, bool) {
	var found []BandQuota
	for q := range objectValues[BandQuota](l, KindQuota) {
		if q.User == like.User && q.Group == like.Group && q.Band == like.Band && q.Contains(t) {
			found = append(found, q)
		}
	}
	if len(found) == 0 {
		return BandQuota{}, false
	}
	return slices.MaxFunc(found, func(a, b BandQuota) int {
		return cmp.Compare(boolToInt(a.isBounded()), boolToInt(b.isBounded()))
	}), true
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SubjectText names the user or group of the quota for messages.
func (q BandQuota) SubjectText() string {
	switch {
	case q.Group != "":
		return "group " + q.Group
	case q.User == EachUser:
		return "each user"
	}
	return "user " + q.User
}
