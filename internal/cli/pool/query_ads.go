package pool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// AdsCommand returns roost ads: print ads: what daemons and jobs say of themselves.
func AdsCommand() *frame.Command {
	return &frame.Command{
		Name: "ads", Group: frame.GroupPool, Summary: "print ads: what daemons and jobs say of themselves",
		MaxOperands: 0,
		Run:         printAds,
		Description: "Prints the ClassAds of machines and daemons that the collector knows, or of jobs, an attribute " +
			"a line and an empty line between ads.",
		Examples: []frame.Example{
			{Line: "roost ads --constraint 'Memory > 4096' --attributes Name,Memory",
				Description: "name and free memory of some machines"},
			{Line: "roost ads --type Job --constraint 'Owner == \"ann\"'", Description: "the ads of ann's jobs"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "type", Aliases: []string{"t"},
				Usage: "ads of this `TYPE`: Machine, Scheduler, Negotiator, Collector, Job, or any", Value: "Machine"},
			&ucli.StringFlag{Name: "constraint", Aliases: []string{"c"},
				Usage: "only ads that satisfy the ClassAd `EXPR`"},
			&ucli.StringSliceFlag{Name: "attributes", Aliases: []string{"a"}, Usage: "only these attributes, `A,B`"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` ads; 0 for all"},
			frame.JSONFlag(),
		},
	}
}

func printAds(c *frame.Invocation) error {
	var wanted []string
	for _, text := range c.StringsFlag("attributes") {
		wanted = append(wanted, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	texts, err := queryAdTexts(c, wanted)
	if err != nil {
		return err
	}
	list := make([]json.RawMessage, 0, len(texts))
	for i, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return frame.KindErrorf(roost.Internal, "an ad cannot be read: %v", err)
		}
		projectAds(ad, wanted)
		if c.WantsJSON() {
			record, err := ad.MarshalJSON()
			if err != nil {
				return err
			}
			list = append(list, record)
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		fmt.Fprintln(c.Stdout, strings.TrimRight(ad.Old(), "\n"))
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"ads": list})
	}
	if len(texts) == 0 {
		fmt.Fprintln(c.Stderr, "no ads match")
	}
	return nil
}

// queryAdTexts asks the schedd for ads of its jobs, and through it a collector for all
// others.
func queryAdTexts(c *frame.Invocation, wanted []string) ([]string, error) {
	limit := uint32(max(c.CountFlag("limit"), 0))
	kind := c.StringFlag("type")
	if strings.EqualFold(kind, "any") {
		kind = ""
	}
	if !strings.EqualFold(kind, "Job") {
		return c.QueryAds(&scheddapi.AdQuery{Type: kind, Constraint: c.StringFlag("constraint"), Projection: wanted,
			Limit: limit})
	}
	selection := &scheddapi.Selection{Constraint: c.StringFlag("constraint")}
	found, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: selection, Ads: true, Limit: limit})
	texts := make([]string, len(found))
	for i, s := range found {
		texts[i] = s.GetAd()
	}
	return texts, err
}

// projectAds leaves only the wanted attributes; all of them if none is named.
func projectAds(ad *classad.Ad, wanted []string) {
	if len(wanted) == 0 {
		return
	}
	for _, name := range ad.Names() {
		if !slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, name) }) {
			ad.Delete(name)
		}
	}
}
