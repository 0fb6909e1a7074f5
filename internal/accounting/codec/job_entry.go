package codec

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

func appendJob(b []byte, j *accounting.JobEntry) []byte {
	b = appendText(appendNumber(b, 1, j.Seq), 2, cutText(j.Name))
	b = appendText(b, 3, cutText(j.Owner))
	b = appendNumber(appendNumber(b, 4, j.UID), 5, j.GID)
	b = appendText(appendText(b, 6, cutText(j.UnixGroup)), 7, cutText(j.Group))
	b = appendText(b, 8, cutText(j.Project))
	b = appendNumber(b, 9, j.Band)
	b = appendText(b, 10, cutText(j.Queue))
	b = appendNumber(appendBool(b, 11, j.Array), 12, j.Tasks)
	b = appendResources(b, 13, &j.Request)
	b = appendNumber(b, 14, j.Walltime)
	b = appendText(appendText(b, 15, cutText(j.Arguments)), 16, cutText(j.WorkDir))
	b = appendNumber(appendNumber(b, 17, j.Submitted), 18, j.Eligible)
	return appendBool(appendNumber(b, 19, j.Ended), 20, j.Removed)
}

func decodeJob(b []byte, j *accounting.JobEntry) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			j.Seq = f.value
		case 2:
			j.Name = string(f.bytes)
		case 3:
			j.Owner = string(f.bytes)
		case 4:
			j.UID = uint32(f.value)
		case 5:
			j.GID = uint32(f.value)
		case 6:
			j.UnixGroup = string(f.bytes)
		case 7:
			j.Group = string(f.bytes)
		case 8:
			j.Project = string(f.bytes)
		case 9:
			j.Band = roost.PriorityBand(f.value)
		case 10:
			j.Queue = string(f.bytes)
		case 11:
			j.Array = f.value != 0
		case 12:
			return decodeIndex(f.value, 0, &j.Tasks)
		case 13:
			return decodeResources(f.bytes, &j.Request)
		default:
			decodeJobTimes(f, j)
		}
		return nil
	})
}

func decodeJobTimes(f encodedField, j *accounting.JobEntry) {
	switch f.number {
	case 14:
		j.Walltime = int64(f.value)
	case 15:
		j.Arguments = string(f.bytes)
	case 16:
		j.WorkDir = string(f.bytes)
	case 17:
		j.Submitted = accounting.Millis(f.value)
	case 18:
		j.Eligible = accounting.Millis(f.value)
	case 19:
		j.Ended = accounting.Millis(f.value)
	case 20:
		j.Removed = f.value != 0
	}
}
