package queue

import (
	"strings"

	"github.com/roost-batch/roost"
)

// mailOptions is what an ad says of notices.
type mailOptions struct {
	onBegin, onEnd, onAbort, perTask bool // each: of the tasks of an array
	recipients                       string
}

func (r *adReader) mailOptions() *mailOptions {
	points := r.text(roost.AttrMailPoints, "")
	if strings.Trim(points, "abej") != "" && points != "n" {
		r.fail(roost.AttrMailPoints, "of the letters a, b, e and j, or n")
	}
	if points == "" || points == "n" {
		return nil
	}
	has := func(letter string) bool { return strings.Contains(points, letter) }
	return &mailOptions{has("b"), has("e"), has("a"), has("j"), r.text(roost.AttrMailUsers, "")}
}
