package qsub

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// maxMinutes bounds an interval of -c: a hundred years.
const maxMinutes = 100 * 365 * 24 * 60

// setCheckpoint parses -c (POSIX XCU qsub; w as in OpenPBS). n means never, s when the
// task must leave its machine, c and w periodically, with "=minutes" as the period. c is
// CPU time there; here both are the time that the task runs.
func (s *JobSubmission) setCheckpoint(v string) error {
	kind, minutes, timed := strings.Cut(v, "=")
	switch {
	case kind == "u" && !timed:
		s.checkpointOption = ""
	case (kind == "n" || kind == "s" || kind == "c" || kind == "w") && !timed:
		s.checkpointOption = kind
	case (kind == "c" || kind == "w") && timed:
		if n, err := strconv.Atoi(minutes); err != nil || n < 1 || n > maxMinutes {
			return IllegalValueError('c')
		}
		s.checkpointOption = minutes
	default:
		return IllegalValueError('c')
	}
	return nil
}

// setCheckpointAttributes writes the value of -c into the ad.
func (s *JobSubmission) setCheckpointAttributes(ad *classad.Ad) {
	switch s.checkpointOption {
	case "":
	case "n":
		ad.SetBool(roost.AttrCheckpoint, false)
	case "s":
		ad.SetBool(roost.AttrCheckpoint, true)
		ad.SetInt(roost.AttrCheckpointEvery, -1)
	case "c", "w":
		ad.SetBool(roost.AttrCheckpoint, true)
		ad.SetInt(roost.AttrCheckpointEvery, 0)
	default:
		n, _ := strconv.ParseInt(s.checkpointOption, 10, 64)
		ad.SetBool(roost.AttrCheckpoint, true)
		ad.SetInt(roost.AttrCheckpointEvery, n*60)
	}
}
