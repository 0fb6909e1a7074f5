package qsub

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// dependTypes returns the types of dependencies of OpenPBS and Torque, and of Roost's
// own, with their kinds of operands.
func dependTypes() map[string]dependencyKind {
	kinds := map[string]dependencyKind{"on": takesNumber, "synccount": takesNumber, "runone": takesJobs,
		"syncwith": takesJobs, "afterready": takesJobs, "aftercorr": takesJobs}
	for _, when := range []string{"", "ok", "notok", "any"} {
		kinds["after"+when], kinds["before"+when] = takesJobs, takesJobs
		array := when + "array"
		if when == "" {
			array = "startarray"
		}
		kinds["after"+array], kinds["before"+array] = takesArrays, takesArrays
	}
	return kinds
}

// dependencyKind says what follows the name of a dependency type.
type dependencyKind int

const (
	takesJobs   dependencyKind = iota + 1 // job ids
	takesArrays                           // array ids, which may have a number of subjobs: "12[][3]"
	takesNumber
)

// setDepend parses "type:id[:id…][,type:…]" and "on:N". A dependency is on whole jobs,
// not on a subjob or a range. In the ad each id has its type before it. A "?" before a
// type makes alternatives of its jobs, and a time may follow a job, as in "after:12+5m".
func (s *JobSubmission) setDepend(value string) error {
	for _, group := range strings.Split(value, ",") {
		group, isAlternative := strings.CutPrefix(strings.TrimSpace(group), "?")
		kind, ids, _ := strings.Cut(group, ":")
		switch what := dependTypes()[kind]; {
		case what == 0 || ids == "":
			return IllegalValueError('W')
		case what == takesNumber && isAlternative:
			return IllegalValueError('W')
		case what == takesNumber:
			if n, err := strconv.Atoi(ids); err != nil || n < 1 {
				return IllegalValueError('W')
			}
			s.dependencies = append(s.dependencies, kind+":"+ids)
		default:
			for _, id := range strings.Split(ids, ":") {
				id, delay, isDelayed := strings.Cut(id, "+")
				name, ok := parseDependencyID(id, what == takesArrays)
				if !ok || isDelayed && (kind != "after" || delay == "") {
					return IllegalValueError('W')
				}
				if isDelayed {
					name += "+" + delay
				}
				s.dependencies = append(s.dependencies, alternativeMark[isAlternative]+kind+":"+name)
			}
		}
	}
	return nil
}

// alternativeMark is before the type of a dependency that is one of several alternatives.
var alternativeMark = map[bool]string{true: "?"}

// parseDependencyID parses a job id with or without a server. If counted is set, an array
// may have a number of subjobs. Examples are "12", "12[].host", "12[3].host@server" and
// "12[][3]". The schedd parses it again, with more checks.
func parseDependencyID(id string, counted bool) (name string, ok bool) {
	id, server, _ := strings.Cut(id, "@")
	plain, count := id, ""
	if open := strings.LastIndexByte(id, '['); open >= 0 && counted {
		if end := open + strings.IndexByte(id[open:], ']'); end > open+1 {
			count, plain = id[open:end+1], id[:open]+id[end+1:]
			if n, err := strconv.Atoi(count[1 : len(count)-1]); err != nil || n < 1 {
				return "", false
			}
		}
	}
	job, err := roost.ParseJobID(plain, server)
	if err != nil {
		return "", false
	}
	if count != "" {
		count = "[]" + count
	}
	name = strconv.FormatUint(job.Seq, 10) + count
	if job.Host != "" {
		name += "." + job.Host
	}
	return name, true
}
