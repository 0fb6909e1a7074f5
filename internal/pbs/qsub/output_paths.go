package qsub

import (
	"cmp"
	"path"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

func (s *JobSubmission) setJoin(v string) error {
	if v != "oe" && v != "eo" && v != "n" {
		return IllegalValueError('j')
	}
	s.Join = strings.TrimSuffix(v, "n")
	return nil
}

// setKeep reads -k: o, e, both, each with d, or n.
func (s *JobSubmission) setKeep(v string) error {
	if v == "" || v != "n" && strings.Trim(v, "oed") != "" {
		return IllegalValueError('k')
	}
	s.KeepFiles = v
	return nil
}

// setRemove reads -R.
func (s *JobSubmission) setRemove(v string) error {
	if v == "" || strings.Trim(v, "oe") != "" {
		return IllegalValueError('R')
	}
	s.Remove = v
	return nil
}

func (s *JobSubmission) absolutePath(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(s.Caller.Dir, p)
}

// workingDirectory is where the job starts: home, as everywhere in PBS, unless Torque's
// -d or -w says otherwise.
func (s *JobSubmission) workingDirectory() string {
	if s.Dir != "" {
		return s.absolutePath(s.Dir)
	}
	return s.Caller.Home
}

// setPaths says where output goes. With -j the streams meet in the file of the first
// letter.
func (s *JobSubmission) setPaths(ad *classad.Ad) {
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
	ad.SetBool(roost.AttrKeepEmptyFiles, true) // clients take the files' being there for the end of the job
	if s.umask >= 0 {
		ad.SetInt(roost.AttrUmask, s.umask)
	}
}

// setRemoval says which files go when the job has succeeded. Joined streams go with the
// file of the letter that gave it its name.
func (s *JobSubmission) setRemoval(ad *classad.Ad, join bool) {
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

// outputPath is where one stream goes, as an ad holds it: -k keeps it in the home
// directory, and else -o or -e names a file, or a directory in which the file is called
// after the job's id, or in Torque as it is without them. Without any it is called after
// the job and lies where qsub ran.
func (s *JobSubmission) outputPath(given string, letter byte, suffix string) string {
	if standing, ok := s.Paths[letter]; ok {
		return standing
	}
	standard := submit.EscapeLiteral(s.Name) + "." + string(letter) + "$(JobSeq)"
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

// joinBelow puts a name that is written as an ad has it into a directory.
func joinBelow(dir, name string) string {
	return submit.EscapeLiteral(strings.TrimSuffix(dir, "/")) + "/" + name
}

// LocalPath makes "[host:]path" absolute. A path that is relative is meant from where
// qsub ran, or with a host from home there (POSIX XCU qsub). Files go to the machine in
// whose queue the job is, whatever host is named. What begins with "./" or has a slash
// before its colon has no host.
func (s *JobSubmission) LocalPath(given string) string {
	host, p, ok := strings.Cut(given, ":")
	switch {
	case !ok || host == "" || p == "" || strings.Contains(host, "/") || !isPlainName(host):
		return s.absolutePath(given)
	case path.IsAbs(p):
		return path.Clean(p)
	case strings.EqualFold(host, s.serverHost()) || host == "localhost":
		return path.Join(s.Caller.Home, p)
	}
	return s.absolutePath(given) // a name with a colon in it, as that of no host that we know
}

// serverHost is the server that gives the job its id.
func (s *JobSubmission) serverHost() string { return cmp.Or(s.Server, s.Caller.Server, s.Caller.Host) }

// expandPath replaces what OpenPBS replaces in a path.
func (s *JobSubmission) expandPath(p string) string {
	index := s.indexReference()
	return strings.NewReplacer("${PBS_JOBID}", s.pbsJobID(), "$PBS_JOBID", s.pbsJobID(), "^array_index^", index,
		"${PBS_ARRAY_INDEX}", index, "$PBS_ARRAY_INDEX", index,
		"${PBS_ARRAYID}", index, "$PBS_ARRAYID", index, "${PBS_JOBNAME}", submit.EscapeLiteral(s.Name), "$PBS_JOBNAME",
		submit.EscapeLiteral(s.Name), "$", "$$").Replace(p)
}

// pbsJobID is PBS's id of the job, or of the subjob.
func (s *JobSubmission) pbsJobID() string {
	if ref := s.indexReference(); ref != "" {
		return "$(JobSeq)[" + ref + "].$(JobHost)"
	}
	return "$(JobId)"
}
