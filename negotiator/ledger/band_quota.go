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

// BandQuota is how much of a band somebody's jobs may ask for at once (Borg §2.5): it is
// looked at when a job is submitted, and in the bands that displace others again when
// tasks start, by what runs then; to lower one evicts nobody. One of a period stands in
// place of the one without while the period lasts. The free band needs none.
type BandQuota struct {
	User  string         `json:"user,omitempty"`  // EachUser: of everybody who has none of his own
	Group string         `json:"group,omitempty"` // all jobs of the group and of those in it together
	Band  string         `json:"band"`
	Max   ResourceBounds `json:"most"`
	Period
}

// EachUser stands for every user who has no quota of his own.
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
		return nil // the one of a period stands in place of the other
	}
	small, large := q, o
	if groupLiesIn(o.Group, q.Group) {
		small, large = o, q
	} else if !groupLiesIn(q.Group, o.Group) {
		return nil
	}
	if small.isBounded() != large.isBounded() {
		return nil // they may be meant to be in force one after the other
	}
	if name, has, may, over := small.Max.firstAbove(large.Max); over && has != "no bound" {
		return fmt.Errorf("group %s would have %s %s of %s, and group %s, in which it lies, has %s: it could "+
			"never use them",
			small.Group, has, name, q.Band, large.Group, may)
	}
	return nil
}

// groupLiesIn reports whether group lies in the other one.
func groupLiesIn(group, other string) bool { return other != "" && strings.HasPrefix(group, other+".") }

// Quotas lists all quotas, by name.
func (l *Ledger) Quotas() []BandQuota { return slices.Collect(objectValues[BandQuota](l, KindQuota)) }

// QuotasFor lists the quotas in force at t that bind a user, on behalf of that group or
// none, in that band: the user's own or that of each user, then those of the group and of
// the groups around it.
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

// quotaInForce is the quota of the same user or group and band that holds at t: that of a
// period rather than the standing one.
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

// SubjectText says whose quota it is, for messages.
func (q BandQuota) SubjectText() string {
	switch {
	case q.Group != "":
		return "group " + q.Group
	case q.User == EachUser:
		return "each user"
	}
	return "user " + q.User
}
