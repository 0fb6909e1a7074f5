package submit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/zclconf/go-cty/cty"
)

// readPlacement reads what decides when and where a job runs.
func (b *builder) readPlacement() {
	b.ad.SetString(roost.AttrBand, b.p.opts.Defaults.Band.String())
	const bandCure = "The bands are free, batch, production and monitoring, from low to high."
	if s, at, ok := b.sameText("band", bandCure); ok {
		if _, err := roost.ParseBand(s); err != nil {
			b.fail(at, fmt.Sprintf("there is no band %q", shorten(s)), bandCure+offer(s, roost.BandNames()))
		} else {
			b.ad.SetString(roost.AttrBand, s)
		}
	}
	n, _ := b.sameInt("priority", roost.MinPriority, roost.MaxPriority, "It orders your own jobs in their band; a higher one goes first, and 0 is ordinary.")
	b.ad.SetInt(roost.AttrPriority, n)
	if s, at, ok := b.sameText("group", "Write the name of an accounting group."); ok {
		if groupName.fits(s) {
			b.ad.SetString(roost.AttrGroup, s)
		} else {
			b.fail(at, fmt.Sprintf("%q cannot be the name of a group", shorten(s)), "A name is made of letters, digits, dots, _ and -, as in \"physics.optics\".")
		}
	}
	if s, at, ok := b.sameText("unix_group", "Write the name of a group that you are in, as id -Gn lists them."); ok {
		if unixGroup.fits(strings.TrimSuffix(s, "$")) {
			b.ad.SetString(roost.AttrUnixGroup, s)
		} else {
			b.fail(at, fmt.Sprintf("%q cannot be the name of a group", shorten(s)), "Write the name of a group that you are in, as id -Gn lists them.")
		}
	}
	b.readConstraint("requirements", roost.AttrRequirements)
	b.readConstraint("rank", roost.AttrRank)
	b.readWishes()
	b.readStartAfter()
	b.readLabels()
}

// readLimits reads what happens while a job runs, and after its tasks have failed.
func (b *builder) readLimits() {
	retries, _ := b.sameInt("retries", 0, 1000, "It says how often a task that failed is run again.")
	b.ad.SetInt(roost.AttrMaxRetries, retries)
	notice, lease := b.p.opts.Defaults.Notice, b.p.opts.Defaults.Lease
	if d, _, ok := b.sameLength("notice", 0); ok {
		notice = d
	}
	if d, _, ok := b.sameLength("lease", 10*time.Second); ok {
		lease = d
	}
	b.ad.SetInt(roost.AttrNotice, seconds(notice))
	b.ad.SetInt(roost.AttrJobLease, seconds(lease))
	if n, ok := b.sameInt("max_running", 1, roost.MaxTasks, "It says how many tasks of this job may run at once."); ok {
		b.ad.SetInt(roost.AttrMaxRunning, n)
	}
	b.readGang()
	b.readQueue()
	if hold, ok := b.sameBool("hold"); ok {
		b.ad.SetBool(roost.AttrHoldOnSubmit, hold)
	}
	if again, ok := b.sameBool("rerunnable"); ok {
		b.ad.SetBool(roost.AttrRerunnable, again)
	}
	b.readUmask()
}

func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func (b *builder) readUmask() {
	v, at, ok := b.same("umask")
	if !ok {
		return
	}
	const cure = "Write the octal digits in quotes, as in umask = \"022\"."
	if v.Type() != cty.String {
		b.fail(at, "umask has to be a text", fmt.Sprintf("It is %s: a number here would be decimal. %s", describe(v), cure))
		return
	}
	n, err := strconv.ParseUint(v.AsString(), 8, 16)
	if err != nil || n > 0o777 {
		b.fail(at, "umask is not a mask of rights", fmt.Sprintf("It is %s, and can be from \"000\" to \"777\". %s", describe(v), cure))
		return
	}
	b.ad.SetInt(roost.AttrUmask, int64(n))
}

// readLabels reads a map of texts that are there for people and their scripts.
func (b *builder) readLabels() {
	v, at, ok := b.same("labels")
	if !ok {
		return
	}
	labels, ok := b.mapOf(v, at, "labels")
	if !ok {
		return
	}
	ad := classad.New()
	for _, name := range sortedKeys(labels) {
		if !envName.fits(name) {
			b.fail(at, fmt.Sprintf("%q cannot be the name of a label", shorten(name)), "A name is made of letters, digits and _, and does not begin with a digit.")
			return
		}
		ad.SetString(name, labels[name])
	}
	b.ad.SetAd(roost.AttrLabels, ad)
}

// readStartAfter reads a time of day, a date with a time, or a length of time from now.
func (b *builder) readStartAfter() {
	const cure = "Write a time (\"18:00\"), a date and a time (\"2026-12-24 18:00\", or RFC 3339) or a length of time from now (\"2h\")."
	s, at, ok := b.sameText("start_after", cure)
	if !ok {
		return
	}
	when, ok := startTime(s, b.p.opts.Now)
	if !ok {
		b.fail(at, fmt.Sprintf("%q is not a time", shorten(s)), cure)
		return
	}
	b.ad.SetInt(roost.AttrStartAfter, when.Unix())
}

func startTime(s string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, true
		}
	}
	if t, err := time.ParseInLocation("15:04", s, now.Location()); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, true
	}
	if d, err := roost.ParseDuration(s); err == nil && d <= maxLength {
		return now.Add(d), true
	}
	return time.Time{}, false
}
