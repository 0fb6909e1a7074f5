package qsub

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// dependTypes are the types of dependency of OpenPBS and Torque, and what stands behind
// each.
func dependTypes() map[string]dependencyKind {
	kinds := map[string]dependencyKind{"on": takesNumber, "synccount": takesNumber, "runone": takesJobs,
		"syncwith": takesJobs}
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

// dependencyKind says what stands behind the name of a type.
type dependencyKind int

const (
	takesJobs   dependencyKind = iota + 1 // ids
	takesArrays                           // ids, each of which may say of how many subjobs: "12[][3]"
	takesNumber
)

// setDepend reads "type:id[:id…][,type:…]" and "on:N". A job waits for whole jobs: a
// subjob or a range of them is none. Each id goes into the ad with its type before it.
func (s *JobSubmission) setDepend(value string) error {
	for _, group := range strings.Split(value, ",") {
		kind, ids, _ := strings.Cut(strings.TrimSpace(group), ":")
		switch what := dependTypes()[kind]; {
		case what == 0 || ids == "":
			return IllegalValueError('W')
		case what == takesNumber:
			if n, err := strconv.Atoi(ids); err != nil || n < 1 {
				return IllegalValueError('W')
			}
			s.dependencies = append(s.dependencies, kind+":"+ids)
		default:
			for _, id := range strings.Split(ids, ":") {
				name, ok := parseDependencyID(id, what == takesArrays)
				if !ok {
					return IllegalValueError('W')
				}
				s.dependencies = append(s.dependencies, kind+":"+name)
			}
		}
	}
	return nil
}

// parseDependencyID reads the id of a job with or without a server, and of an array with
// how many of its subjobs where that is allowed: "12", "12[].host", "12[3].host@server"
// and "12[][3]". The queue reads it again, and knows more.
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
