package sbatch

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// jobNumber is the reference to the job's number in texts of its ad.
const jobNumber = "$(JobSeq)"

// taskNumber is the reference to the number of the job, or of the array's task.
const taskNumber = "$(TaskNumber)"

// arrayIndex is the reference to the index of an array's task; empty: there is no array.
func (s *submission) arrayIndex() string {
	switch {
	case s.Array == nil:
		return ""
	case s.Array.IsPlain():
		return "$(TaskIndex)"
	}
	return "$(ArrayIndex)"
}

// noIndex is what %a is outside of an array (NO_VAL of Slurm).
const noIndex = "4294967294"

// expand replaces the letters behind % in the name of a file ("filename pattern" in
// sbatch(1)), and makes it absolute. A backslash in it switches that off.
func (s *submission) expand(pattern string) string {
	if strings.Contains(pattern, `\`) {
		return jobspec.EscapeLiteral(s.absolute(s.cwd, strings.ReplaceAll(pattern, `\`, "")))
	}
	index := s.arrayIndex()
	if index == "" {
		index = noIndex
	}
	if !strings.HasPrefix(pattern, "/") {
		pattern = strings.TrimSuffix(strings.ReplaceAll(s.cwd, "%", "%%"), "/") + "/" +
			strings.TrimPrefix(pattern, "./")
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteString(jobspec.EscapeLiteral(pattern[i : i+1]))
			continue
		}
		from := i
		for i++; i+1 < len(pattern) && pattern[i] >= '0' && pattern[i] <= '9'; i++ {
		}
		switch pattern[i] {
		case '%':
			b.WriteByte('%')
		case 'j', 'J':
			b.WriteString(taskNumber)
		case 'A':
			b.WriteString(jobNumber)
		case 'a':
			b.WriteString(index)
		case 'x':
			b.WriteString(jobspec.EscapeLiteral(s.Name))
		case 'u':
			b.WriteString(jobspec.EscapeLiteral(s.caller.User))
		case 'n', 't':
			b.WriteByte('0')
		case 's':
			b.WriteString("batch")
		case 'N':
			b.WriteString("$(NodeName)")
		case 'b':
			if s.Array == nil {
				b.WriteString(noIndex[len(noIndex)-1:])
				continue
			}
			b.WriteString("$(ArrayDigit)")
		default:
			b.WriteString(jobspec.EscapeLiteral(pattern[from : i+1]))
		}
	}
	return b.String()
}

// setStreams sets the files of the streams. Without --error both go to one file.
func (s *submission) setStreams(ad *classad.Ad) {
	out := s.value("output")
	if out == "" {
		if out = "slurm-%j.out"; s.Array != nil {
			out = "slurm-%A_%a.out"
		}
	}
	file := s.expand(out)
	ad.SetString(roost.AttrOut, file)
	ad.SetBool(roost.AttrJoinOutput, true)
	ad.Delete(roost.AttrErr)
	if text := s.value("error"); text != "" {
		if errors := s.expand(text); errors != file {
			ad.SetString(roost.AttrErr, errors)
			ad.SetBool(roost.AttrJoinOutput, false)
		}
	}
	if text := s.value("input"); text != "" && text != "none" && text != "/dev/null" {
		ad.SetString(roost.AttrIn, s.expand(text))
	}
}
