package pbs

import (
	"cmp"
	"path"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

func (s *submission) setJoin(v string) error {
	if v != "oe" && v != "eo" && v != "n" {
		return illegal('j')
	}
	s.join = strings.TrimSuffix(v, "n")
	return nil
}

// setKeep reads -k: o, e, both, each with d, or n.
func (s *submission) setKeep(v string) error {
	if v == "" || v != "n" && strings.Trim(v, "oed") != "" {
		return illegal('k')
	}
	s.keep = v
	return nil
}

// setRemove reads -R.
func (s *submission) setRemove(v string) error {
	if v == "" || strings.Trim(v, "oe") != "" {
		return illegal('R')
	}
	s.remove = v
	return nil
}

func (s *submission) absolute(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(s.caller.Dir, p)
}

// workDir is where the job starts: home, as everywhere in PBS, unless Torque's -d or -w says otherwise.
func (s *submission) workDir() string {
	if s.dir != "" {
		return s.absolute(s.dir)
	}
	return s.caller.Home
}

// setPaths says where output goes. With -j the streams meet in the file of the first letter.
func (s *submission) setPaths(ad *classad.Ad) {
	out, err := s.outputPath(s.out, 'o', ".OU"), s.outputPath(s.err, 'e', ".ER")
	join := s.join != "" || out == err && out != "/dev/null" // two descriptors on one file would overwrite each other
	switch {
	case s.join == "eo":
		out = err
	case !join:
		ad.SetString(roost.AttrErr, err)
	}
	ad.SetString(roost.AttrOut, out)
	ad.SetBool(roost.AttrJoinOutput, join)
	s.setRemoval(ad, join)
	ad.SetBool(roost.AttrKeepOutput, true) // clients take the files' being there for the end of the job
	if s.umask >= 0 {
		ad.SetInt(roost.AttrUmask, s.umask)
	}
}

// setRemoval says which files go when the job has succeeded. Joined streams go with the file of the letter that gave it its name.
func (s *submission) setRemoval(ad *classad.Ad, join bool) {
	gone := ""
	if strings.Contains(s.remove, cmp.Or(s.join, "o")[:1]) {
		gone = "o"
	}
	if !join && strings.Contains(s.remove, "e") {
		gone += "e"
	}
	if gone != "" {
		ad.SetString(roost.AttrRemoveOutput, gone)
	}
}

// outputPath is where one stream goes, as an ad holds it: -k keeps it in the home directory, and else -o or -e names a file, or a directory in which
// the file is called after the job's id, or in Torque as it is without them. Without any it is called after the job and lies where qsub ran.
func (s *submission) outputPath(given string, letter byte, suffix string) string {
	if standing, ok := s.paths[letter]; ok {
		return standing
	}
	standard := submit.Literal(s.name) + "." + string(letter) + "$(JobSeq)"
	if ref := s.indexRef(); ref != "" && s.caller.torque() {
		standard += "-" + ref
	} else if ref != "" {
		standard += "." + ref
	}
	if strings.IndexByte(s.keep, letter) >= 0 && strings.IndexByte(s.keep, 'd') < 0 {
		return below(s.caller.Home, standard)
	}
	if given == "" {
		return below(s.caller.Dir, standard)
	}
	full := s.localPath(given)
	if strings.HasSuffix(given, "/") || s.caller.IsDir != nil && !strings.ContainsAny(given, "$^") && s.caller.IsDir(full) {
		if s.caller.torque() {
			return s.expand(full) + "/" + standard
		}
		return s.expand(full) + "/" + s.jobID() + suffix
	}
	return s.expand(full)
}

// below puts a name that is written as an ad has it into a directory.
func below(dir, name string) string { return submit.Literal(strings.TrimSuffix(dir, "/")) + "/" + name }

// localPath makes "[host:]path" absolute. A path that is relative is meant from where qsub ran, or with a host from home there (POSIX XCU qsub). Files go to
// the machine in whose queue the job is, whatever host is named. What begins with "./" or has a slash before its colon has no host.
func (s *submission) localPath(given string) string {
	host, p, ok := strings.Cut(given, ":")
	switch {
	case !ok || host == "" || p == "" || strings.Contains(host, "/") || !plainName(host):
		return s.absolute(given)
	case path.IsAbs(p):
		return path.Clean(p)
	case strings.EqualFold(host, s.host()) || host == "localhost":
		return path.Join(s.caller.Home, p)
	}
	return s.absolute(given) // a name with a colon in it, as that of no host that we know
}

// host is the server that gives the job its id.
func (s *submission) host() string { return cmp.Or(s.server, s.caller.Server, s.caller.Host) }

// expand replaces what OpenPBS replaces in a path.
func (s *submission) expand(p string) string {
	index := s.indexRef()
	return strings.NewReplacer("${PBS_JOBID}", s.jobID(), "$PBS_JOBID", s.jobID(), "^array_index^", index, "${PBS_ARRAY_INDEX}", index, "$PBS_ARRAY_INDEX", index,
		"${PBS_ARRAYID}", index, "$PBS_ARRAYID", index, "${PBS_JOBNAME}", submit.Literal(s.name), "$PBS_JOBNAME", submit.Literal(s.name), "$", "$$").Replace(p)
}

// jobID is PBS's id of the job, or of the subjob.
func (s *submission) jobID() string {
	if ref := s.indexRef(); ref != "" {
		return "$(JobSeq)[" + ref + "].$(JobHost)"
	}
	return "$(JobId)"
}
