package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/release"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// daemonVersion is the program of one daemon, as its ad says it.
type daemonVersion struct {
	Daemon   string    `json:"daemon"` // "startd"
	Name     string    `json:"name"`   // of the ad: a machine, or a node
	Version  string    `json:"version"`
	Commit   string    `json:"commit,omitempty"`
	Protocol int64     `json:"protocol,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Relation string    `json:"relation"` // to the release of this program
}

// poolVersions is what roost version --pool prints.
type poolVersions struct {
	Daemons  []daemonVersion
	Warnings []string
}

// daemonsOfTypes are the daemons with ads, by the type of the ad, in the order of the
// list.
func daemonsOfTypes() [][2]string {
	return [][2]string{{"Negotiator", "negotiator"}, {"Scheduler", "schedd"}, {"Machine", "startd"}}
}

// PrintVersions prints which daemons of the pool run which program, and what does not
// work together.
func PrintVersions(c *frame.Invocation) error {
	var found poolVersions
	for _, kind := range daemonsOfTypes() {
		texts, err := c.QueryAds(&scheddapi.AdQuery{Type: kind[0], Projection: []string{roost.AttrName,
			roost.AttrVersion, release.AttrCommit, release.AttrProtocol, roost.AttrDaemonStart}})
		if err != nil {
			return err
		}
		for _, text := range texts {
			ad, err := classad.Parse(text)
			if err != nil {
				return frame.KindErrorf(roost.Internal, "the ad of a %s cannot be read: %v", kind[1], err)
			}
			found.Daemons = append(found.Daemons, versionOf(kind[1], ad))
		}
	}
	found.compare(release.Own())
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"version": roost.Version, "daemons": found.Daemons,
			"warnings": slices.Concat([]string{}, found.Warnings)})
	}
	found.table(c.Now()).Print(c.Stdout, c.OutScreen)
	for _, text := range found.Warnings {
		fmt.Fprintf(c.Stderr, "Warning: %s\n", text)
	}
	return nil
}

func versionOf(daemon string, ad *classad.Ad) daemonVersion {
	p := release.Of(ad)
	v := daemonVersion{Daemon: daemon, Version: document.PrintableText(p.Version),
		Commit: document.PrintableText(p.Commit), Protocol: p.Protocol,
		Relation: release.RelationOf(p.Version).String()}
	name, _ := ad.Str(roost.AttrName)
	v.Name = document.PrintableText(name)
	if started, ok := ad.Int(roost.AttrDaemonStart); ok && started > 0 {
		v.Started = time.Unix(started, 0).UTC()
	}
	return v
}

// compare sorts the daemons, and warns of what does not work together.
func (p *poolVersions) compare(own release.Program) {
	order := func(daemon string) int {
		return slices.IndexFunc(daemonsOfTypes(), func(k [2]string) bool { return k[1] == daemon })
	}
	slices.SortStableFunc(p.Daemons, func(a, b daemonVersion) int {
		return cmp.Or(cmp.Compare(order(a.Daemon), order(b.Daemon)), document.CompareNames(a.Name, b.Name))
	})
	counts, byRelation := map[string]int{}, map[string][]string{}
	for _, d := range p.Daemons {
		counts[strings.TrimSpace(cmp.Or(d.Version, "unknown version")+" "+d.Commit)]++
		byRelation[d.Relation] = append(byRelation[d.Relation], d.Daemon+" "+d.Name)
	}
	if len(counts) > 1 {
		p.Warnings = append(p.Warnings, "the daemons are of different builds: "+countsText(counts))
	}
	for _, w := range []struct {
		relation release.Relation
		text     string
	}{
		{release.OneBefore, "of the release before %s, which works with it: upgrade them when the others are: %s"},
		{release.TooOld, "older than the release before %s, which daemons of it need not understand; upgrade them " +
			"one release at a time: %s"},
		{release.Newer, "newer than %s, the release of this program: upgrade this program: %s"},
		{release.Unknown, "of a version that cannot be compared with %s: %s"},
	} {
		if names := byRelation[w.relation.String()]; len(names) > 0 {
			p.Warnings = append(p.Warnings, fmt.Sprintf(w.text, own.Version, shortList(names)))
		}
	}
}

// countsText says how many daemons each build has, the most frequent first.
func countsText(counts map[string]int) string {
	var builds []string
	for build := range counts {
		builds = append(builds, build)
	}
	slices.SortFunc(builds, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, build := range builds {
		builds[i] = fmt.Sprintf("%d of %s", counts[build], build)
	}
	return shortList(builds)
}

// shortList joins the first few of a list.
func shortList(all []string) string {
	const most = 5
	if len(all) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}

func (p *poolVersions) table(now time.Time) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "DAEMON"}, {Head: "NAME"}, {Head: "VERSION"}, {Head: "COMMIT", DropPriority: 2},
		{Head: "PROTOCOL", RightAligned: true, DropPriority: 3}, {Head: "UP", RightAligned: true, DropPriority: 1},
		{Head: "RELEASE"},
	}}
	colours := map[string]string{release.OneBefore.String(): frame.Yellow, release.Newer.String(): frame.Yellow,
		release.TooOld.String(): frame.Red, release.Unknown.String(): frame.Red}
	for _, d := range p.Daemons {
		up, protocol := "-", "-"
		if !d.Started.IsZero() {
			up = document.SpanText(max(0, now.Sub(d.Started)))
		}
		if d.Protocol > 0 {
			protocol = fmt.Sprint(d.Protocol)
		}
		t.AddRow(frame.TableCell{Text: d.Daemon}, frame.TableCell{Text: d.Name},
			frame.TableCell{Text: cmp.Or(d.Version, "-")}, frame.TableCell{Text: cmp.Or(d.Commit, "-")},
			frame.TableCell{Text: protocol}, frame.TableCell{Text: up},
			frame.TableCell{Text: d.Relation, Colour: colours[d.Relation]})
	}
	return t
}
