package qsub

import (
	"cmp"
	"path"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

func (s *JobSubmission) setJoin(v string) error {
	if v != "oe" && v != "eo" && v != "n" {
		return IllegalValueError('j')
	}
	s.Join = strings.TrimSuffix(v, "n")
	return nil
}

// setKeep parses -k: o, e, both, each with d, or n.
func (s *JobSubmission) setKeep(v string) error {
	if v == "" || v != "n" && strings.Trim(v, "oed") != "" {
		return IllegalValueError('k')
	}
	s.KeepFiles = v
	return nil
}

// setRemove parses -R.
func (s *JobSubmission) setRemove(v string) error {
	if v == "" || strings.Trim(v, "oe") != "" {
		return IllegalValueError('R')
	}
	s.Remove = v
	return nil
}

func (s pathSetter) absolutePath(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(s.Caller.Dir, p)
}

// workingDirectory returns the directory where the job starts. As everywhere in PBS it is
// the home directory, unless Torque's -d or -w sets it.
func (s pathSetter) workingDirectory() string {
	if s.Dir != "" {
		return s.absolutePath(s.Dir)
	}
	return s.Caller.Home
}

// setPaths writes the output paths. With -j both streams go to the file of the first
// letter.
func (s pathSetter) setPaths(ad *classad.Ad) {
	out, err := s.outputPath(s.out, 'o', ".OU"), s.outputPath(s.err, 'e', ".ER")
	join := s.Join != "" || out == err && out != "/dev/null" // two descriptors on one file would overwrite each other
	switch {
	case s.Join == "eo":
		out = err
	case !join:
		ad.SetString(roost.AttrErr, err)
	}
	ad.SetString(roost.AttrOut, out)
	ad.SetBool(roost.AttrJoinOutput, join)
	s.setRemoval(ad, join)
	ad.SetBool(roost.AttrKeepEmptyFiles, true) // clients take the files' existence for the end of the job
	if s.umask >= 0 {
		ad.SetInt(roost.AttrUmask, s.umask)
	}
}

// setRemoval writes which files are removed after success. For joined streams it is that
// of the first letter of -j.
func (s pathSetter) setRemoval(ad *classad.Ad, join bool) {
	gone := ""
	if strings.Contains(s.Remove, cmp.Or(s.Join, "o")[:1]) {
		gone = "o"
	}
	if !join && strings.Contains(s.Remove, "e") {
		gone += "e"
	}
	if gone != "" {
		ad.SetString(roost.AttrRemoveOutput, gone)
	}
}

// outputPath returns the path of one stream in the form of the ad. With -k the file is in
// the home directory. Otherwise -o or -e names a file, or a directory in which the file
// is named after the job's id, or in Torque with its default name. Without any of them
// the file is named after the job, in the directory of qsub.
func (s pathSetter) outputPath(given string, letter byte, suffix string) string {
	if earlier, ok := s.Paths[letter]; ok {
		return earlier
	}
	standard := jobspec.EscapeLiteral(s.Name) + "." + string(letter) + "$(JobSeq)"
	if ref := s.indexReference(); ref != "" && s.Caller.isTorque() {
		standard += "-" + ref
	} else if ref != "" {
		standard += "." + ref
	}
	if strings.IndexByte(s.KeepFiles, letter) >= 0 && strings.IndexByte(s.KeepFiles, 'd') < 0 {
		return joinBelow(s.Caller.Home, standard)
	}
	if given == "" {
		return joinBelow(s.Caller.Dir, standard)
	}
	full := s.LocalPath(given)
	if strings.HasSuffix(given, "/") || s.Caller.IsDir != nil && !strings.ContainsAny(given, "$^") &&
		s.Caller.IsDir(full) {
		if s.Caller.isTorque() {
			return s.expandPath(full) + "/" + standard
		}
		return s.expandPath(full) + "/" + s.pbsJobID() + suffix
	}
	return s.expandPath(full)
}

// joinBelow appends a name in the form of the ad to a directory.
func joinBelow(dir, name string) string {
	return jobspec.EscapeLiteral(strings.TrimSuffix(dir, "/")) + "/" + name
}

// LocalPath makes "[host:]path" absolute. A relative path starts at the directory of
// qsub, or with a host at the home directory there (POSIX XCU qsub). Files go to the
// submit node, whatever host is named. A path that begins with "./" or has a slash before
// its colon has no host.
func (s *JobSubmission) LocalPath(given string) string {
	host, p, ok := strings.Cut(given, ":")
	switch {
	case !ok || host == "" || p == "" || strings.Contains(host, "/") || !isPlainName(host):
		return s.paths().absolutePath(given)
	case path.IsAbs(p):
		return path.Clean(p)
	case strings.EqualFold(host, s.paths().serverHost()) || host == "localhost":
		return path.Join(s.Caller.Home, p)
	}
	return s.paths().absolutePath(given) // a name with a colon, since the host is unknown
}

// serverHost returns the server that gives the job its id.
func (s pathSetter) serverHost() string { return cmp.Or(s.Server, s.Caller.Server, s.Caller.Host) }

// expandPath replaces the references in a path as OpenPBS does.
func (s pathSetter) expandPath(p string) string {
	index := s.indexReference()
	return strings.NewReplacer("${PBS_JOBID}", s.pbsJobID(), "$PBS_JOBID", s.pbsJobID(), "^array_index^", index,
		"${PBS_ARRAY_INDEX}", index, "$PBS_ARRAY_INDEX", index,
		"${PBS_ARRAYID}", index, "$PBS_ARRAYID", index, "${PBS_JOBNAME}", jobspec.EscapeLiteral(s.Name), "$PBS_JOBNAME",
		jobspec.EscapeLiteral(s.Name), "$", "$$").Replace(p)
}

// pbsJobID returns the reference to PBS's id of the job or subjob.
func (s pathSetter) pbsJobID() string {
	if ref := s.indexReference(); ref != "" {
		return "$(JobSeq)[" + ref + "].$(JobHost)"
	}
	return "$(JobId)"
}
