package jobad

import (
	"strings"

	"github.com/roost-batch/roost"
)

// MailOptions is what an ad says of notices.
type MailOptions struct {
	OnBegin, OnEnd, OnAbort, PerTask bool // each: of the tasks of an array
	Recipients                       string
}

func (r *adReader) mailOptions() *MailOptions {
	points := r.text(roost.AttrMailPoints, "")
	if strings.Trim(points, "abej") != "" && points != "n" {
		r.fail(roost.AttrMailPoints, "of the letters a, b, e and j, or n")
	}
	if points == "" || points == "n" {
		return nil
	}
	has := func(letter string) bool { return strings.Contains(points, letter) }
	return &MailOptions{has("b"), has("e"), has("a"), has("j"), r.text(roost.AttrMailUsers, "")}
}
