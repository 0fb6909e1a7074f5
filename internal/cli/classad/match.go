package classad

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// adSide is one of the two ads as people see it.
type adSide struct {
	file         string
	ad           *classad.Ad
	requirements classad.Value
	rank         classad.Value
	reasons      []classad.MismatchReason
}

// matchClassads says whether two ads match, and if not, why.
func matchClassads(c *frame.Invocation, files []string) error {
	if files[0] == "-" && files[1] == "-" {
		return frame.WithHint(frame.UsageErrorf("both ads cannot be standard input"),
			"give the name of a file for one of them")
	}
	left, err := readAd(c, files[0])
	if err != nil {
		return err
	}
	right, err := readAd(c, files[1])
	if err != nil {
		return err
	}
	env := evalEnv(c)
	result := classad.Match(left, right, env)
	sides := []adSide{
		{files[0], left, result.Left, rankOf(left, right, env), nil},
		{files[1], right, result.Right, rankOf(right, left, env), nil},
	}
	if !result.Matched {
		for _, r := range classad.Reasons(left, right, env) {
			sides[r.Side].reasons = append(sides[r.Side].reasons, r)
		}
	}
	if c.WantsJSON() {
		err = matchJSON(c, result.Matched, sides)
	} else {
		matchText(c, result.Matched, sides)
	}
	if err == nil && !result.Matched {
		err = frame.ExitError(1)
	}
	return err
}

// rankOf is the value of an ad's Rank against another ad; UNDEFINED without one.
func rankOf(my, target *classad.Ad, env *classad.EvalEnv) classad.Value {
	rank, _ := my.Lookup("Rank")
	return classad.Eval(rank, my, target, env)
}

// rankValue is what a rank counts for: 0 if it is no number.
func rankValue(v classad.Value) float64 {
	f, _ := v.Number()
	return f
}

func matchText(c *frame.Invocation, matched bool, sides []adSide) {
	verdict := c.OutScreen.ColourText(frame.Green, "The ads match.")
	if !matched {
		verdict = c.OutScreen.ColourText(frame.Red, "The ads do not match.")
	}
	fmt.Fprintln(c.Stdout, verdict)
	for i, s := range sides {
		fmt.Fprintf(c.Stdout, "\n%s  %s\n", c.OutScreen.ColourText(frame.Bold, [...]string{"Left", "Right"}[i]),
			displayName(s.file))
		fmt.Fprintf(c.Stdout, "  Rank is %s\n", rankText(s))
		if _, ok := s.ad.Lookup("Requirements"); !ok {
			fmt.Fprintln(c.Stdout, "  it has no Requirements, and matches nothing")
			continue
		}
		fmt.Fprintf(c.Stdout, "  Requirements is %s\n", valueText(s.requirements))
		for _, r := range s.reasons {
			in := ""
			if !strings.EqualFold(r.Attribute, "Requirements") {
				in = ", in " + r.Attribute
			}
			fmt.Fprintf(c.Stdout, "    %s is %s%s\n", document.PrintableText(r.Conjunct.String()),
				c.OutScreen.ColourText(frame.Yellow, valueText(r.Value)), document.PrintableText(in))
			for _, o := range r.Operands {
				if o.Expr.String() != r.Conjunct.String() {
					fmt.Fprintf(c.Stdout, "      %s is %s\n", document.PrintableText(o.Expr.String()),
						valueText(o.Value))
				}
			}
		}
	}
}

// valueText is a value, with the reason for an ERROR.
func valueText(v classad.Value) string {
	if why := v.Reason(); why != "" {
		return document.PrintableText(fmt.Sprintf("%s (%s)", v, why))
	}
	return document.PrintableText(v.String())
}

// displayName is a file as people see it.
func displayName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return document.PrintableText(file)
}

func rankText(s adSide) string {
	if _, ok := s.ad.Lookup("Rank"); !ok {
		return "0, as none is set"
	}
	if _, ok := s.rank.Number(); !ok {
		return valueText(s.rank) + ", which counts as 0"
	}
	return strconv.FormatFloat(rankValue(s.rank), 'g', -1, 64)
}

func matchJSON(c *frame.Invocation, matched bool, sides []adSide) error {
	type operand struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type reason struct {
		Attribute string    `json:"attribute"`
		Conjunct  string    `json:"conjunct"`
		Value     string    `json:"value"`
		Why       string    `json:"why,omitempty"` // of an ERROR
		Operands  []operand `json:"operands"`
	}
	type side struct {
		File         string   `json:"file"`
		Requirements string   `json:"requirements"`
		Rank         *float64 `json:"rank"` // null where JSON cannot hold it
		Reasons      []reason `json:"reasons"`
	}
	list := make([]side, len(sides))
	for i, s := range sides {
		list[i] = side{s.file, s.requirements.String(), nil, []reason{}}
		if rank := rankValue(s.rank); rank-rank == 0 {
			list[i].Rank = &rank
		}
		for _, r := range s.reasons {
			one := reason{r.Attribute, r.Conjunct.String(), r.Value.String(), r.Value.Reason(), []operand{}}
			for _, o := range r.Operands {
				one.Operands = append(one.Operands, operand{o.Expr.String(), o.Value.String()})
			}
			list[i].Reasons = append(list[i].Reasons, one)
		}
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{"match": matched, "left": list[0], "right": list[1]})
}
