package submit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cron"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// scheduleSettings are the settings of a schedule block.
var scheduleSettings = []string{"cron", "zone", "overlap", "missed", "deadline"}

const scheduleExample = "schedule { cron = \"30 3 * * mon-fri\" }"

// readSchedule reads the schedule block: at which instants a run of the job is made.
func (b *jobBuilder) readSchedule() {
	var block *hclsyntax.Block
	for _, inner := range b.body.Blocks {
		if inner.Type != "schedule" {
			continue
		}
		if block != nil {
			b.reportProblem(inner.TypeRange, "there are two schedule blocks",
				"A job has one. Put the instants into one expression, or write two jobs.")
			return
		}
		block = inner
	}
	if block == nil || !b.parser.refuseLabels(block, scheduleExample) ||
		!b.parser.refuseUnknown(block, "a schedule block", scheduleSettings, nil) {
		return
	}
	for _, name := range []string{"start_after", "depends_on"} {
		if a := b.body.Attributes[name]; a != nil {
			b.reportProblem(a.NameRange, name+" means nothing beside a schedule",
				"The schedule says when each run starts. Remove one of the two.")
			return
		}
	}
	for _, other := range b.body.Blocks {
		if other.Type == "service" {
			b.reportProblem(block.TypeRange, "a service has no schedule",
				"A service runs always, and a schedule makes jobs that end. Remove one of the two blocks.")
			return
		}
	}
	inner := *b // the same job; names are looked up in the block
	inner.block, inner.body = block, block.Body
	inner.readScheduleSettings(block)
}

func (b *jobBuilder) readScheduleSettings(block *hclsyntax.Block) {
	ad := classad.New()
	const zoneHint = "Write a name of the time zone database, as in zone = \"Europe/Berlin\". Without it the zone " +
		"is UTC."
	zone, at, ok := b.constantText("zone", zoneHint)
	if !ok {
		zone = "UTC"
	}
	location, err := cron.LoadZone(zone)
	if err != nil {
		b.reportProblem(at, fmt.Sprintf("there is no time zone %q", truncateText(zone)), zoneHint)
		location = time.UTC
	}
	ad.SetString(roost.AttrZone, zone)
	text, at, ok := b.constantText("cron", "Write five fields, as in "+scheduleExample+".")
	if !ok {
		if b.body.Attributes["cron"] == nil {
			b.reportProblem(block.TypeRange, "the schedule says nothing of when", "Write "+scheduleExample+".")
		}
		return
	}
	if _, err := cron.Parse(text, location, ""); err != nil {
		if bad, ok := errors.AsType[*cron.SyntaxError](err); ok {
			b.reportProblem(partOfText(at, text, bad.Start, bad.End), bad.Cause, bad.Cure)
		}
		return
	}
	ad.SetString(roost.AttrCron, text)
	b.readChoice(ad, roost.AttrOverlap, "overlap", jobad.OverlapNames(),
		"It says what is done if a run has not ended when the next is due: skip the next, allow both, or replace "+
			"the first.")
	b.readChoice(ad, roost.AttrMissed, "missed", jobad.MissedNames(),
		"It says which runs are made later that nobody could make in time: the last, none or all.")
	if d, at, ok := b.resourceReader().constantDuration("deadline", jobad.MinDeadline); ok {
		if d > jobad.MaxDeadline {
			b.reportProblem(at, "deadline is too long", fmt.Sprintf("It is %v, and a run is made at most %v late.", d,
				jobad.MaxDeadline))
		}
		ad.SetReal(roost.AttrDeadline, d.Seconds())
	}
	b.ad.SetAd(roost.AttrSchedule, ad)
}

// readChoice reads a setting that is one of a few words.
func (b *jobBuilder) readChoice(to *classad.Ad, attr, name string, words []string, hint string) {
	s, at, ok := b.constantText(name, hint)
	switch {
	case !ok:
	case slices.Contains(words, s):
		to.SetString(attr, s)
	default:
		b.reportProblem(at, fmt.Sprintf("%s cannot be %q", name, truncateText(s)),
			hint+" Write one of "+strings.Join(words, ", ")+"."+nearestHint(s, words))
	}
}

// partOfText returns the place of a part of a text. If the text is written with escapes,
// it is that of the whole text.
func partOfText(at hcl.Range, text string, start, end int) hcl.Range {
	if at.End.Byte-at.Start.Byte != len(text)+2 || at.Start.Line != at.End.Line {
		return at
	}
	if start == end { // something is missing here
		end = min(end+1, len(text)+1)
	}
	from := at.Start
	at.Start = hcl.Pos{Line: from.Line, Column: from.Column + 1 + start, Byte: from.Byte + 1 + start}
	at.End = hcl.Pos{Line: from.Line, Column: from.Column + 1 + end, Byte: from.Byte + 1 + end}
	return at
}
