package condor

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/roost-batch/roost/classad"
)

// JSONText returns ads as condor_q -json prints them: a list of objects, which is empty
// where there is none. Without projection an object has all attributes.
func JSONText(ads []*classad.Ad, projection []string) (string, error) {
	if len(ads) == 0 {
		return "[]\n", nil
	}
	var b bytes.Buffer
	for i, ad := range ads {
		if b.WriteString(",\n"); i == 0 {
			b.Reset()
			b.WriteString("[\n")
		}
		text, err := Project(ad, projection).MarshalJSON()
		if err == nil {
			err = json.Indent(&b, text, "", "  ")
		}
		if err != nil {
			return "", err
		}
		b.WriteString("\n")
	}
	b.WriteString("]\n")
	return b.String(), nil
}

// LongText returns ads as condor_q -long prints them: a line for each attribute, and an
// empty line behind each ad.
func LongText(ads []*classad.Ad, projection []string) string {
	var b strings.Builder
	for _, ad := range ads {
		b.WriteString(strings.TrimRight(Project(ad, projection).Old(), "\n"))
		b.WriteString("\n\n")
	}
	return b.String()
}

// Project returns the ad with only those attributes, or with all if none is named.
func Project(ad *classad.Ad, names []string) *classad.Ad {
	if len(names) == 0 {
		return ad
	}
	out := classad.New()
	for _, name := range names {
		if e, ok := ad.Lookup(name); ok {
			out.Insert(name, e)
		}
	}
	return out
}

// SplitNames takes a list of attributes apart, as -attributes has it.
func SplitNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}
