package condor

import (
	"fmt"
	"io"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
)

// adPrinter prints ads in one of the forms that programs read.
type adPrinter struct {
	*frame.Invocation
	format     *condor.AutoFormat // nil: JSON, or attributes in lines
	json       bool
	projection []string
}

// newPrinter returns the printer that the options ask for; nil: they ask for a table.
func newPrinter(c *frame.Invocation, l condor.CommandLine) (*adPrinter, error) {
	p := &adPrinter{Invocation: c, json: l.Has("json")}
	for _, list := range l.Values("attributes") {
		p.projection = append(p.projection, condor.SplitNames(list)...)
	}
	env := condor.NewEnv(c.Now())
	for _, o := range l.Options {
		var err error
		switch o.Word {
		case "af", "autoformat":
			p.format, err = condor.NewAutoFormat(o.Letters, o.Values, env)
		case "format":
			if p.format == nil {
				p.format = condor.NewPrintfFormat(env)
			}
			err = p.format.AddFormat(o.Values[0], o.Values[1])
		}
		if err != nil {
			return nil, err
		}
	}
	for _, word := range []string{"limit", "match"} {
		if text := l.Last(word); text != "" {
			if _, err := strconv.ParseUint(text, 10, 31); err != nil {
				return nil, fmt.Errorf("-%s %q: it is a number of jobs", word, text)
			}
		}
	}
	if p.format == nil && !p.json && !l.Has("long") && len(p.projection) == 0 {
		return nil, nil
	}
	return p, nil
}

// limited returns at most as many ads as -limit or -match says.
func limited(l condor.CommandLine, ads []*classad.Ad) []*classad.Ad {
	for _, word := range []string{"limit", "match"} {
		if n, err := strconv.Atoi(l.Last(word)); err == nil && n < len(ads) {
			ads = ads[:max(n, 0)]
		}
	}
	return ads
}

func (p *adPrinter) print(ads []*classad.Ad) (err error) {
	var text string
	switch {
	case p.format != nil:
		text = p.format.Text(ads)
	case p.json:
		if text, err = condor.JSONText(ads, p.projection); err != nil {
			return err
		}
	default:
		text = condor.LongText(ads, p.projection)
	}
	if _, err := io.WriteString(p.Stdout, text); err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	return nil
}
