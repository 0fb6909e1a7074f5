package pbs

import (
	"path"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// staged is a file that travels: its name below the job's directory, and its path on the submit side.
type staged struct{ name, path string }

// setStage reads "name@host:path[,…]". The files go to a directory that the job has to itself, or come from it, so names are relative; the host is this one.
func (s *submission) setStage(key, v string) error {
	var all []staged
	for _, item := range items(v) {
		name, remote, at := strings.Cut(item, "@")
		host, p, ok := strings.Cut(remote, ":")
		if !at || !ok || name == "" || host == "" || p == "" || strings.Contains(item, " => ") {
			return illegal('W')
		}
		if own, _, _ := strings.Cut(s.host(), "."); !strings.EqualFold(host, s.host()) && !strings.EqualFold(host, own) && host != "localhost" {
			return refuse("-W "+key+": "+host+" is another machine: files travel between the job and the machine in whose queue it is, "+s.host(), exitIllegalValue)
		}
		clean := path.Clean(name)
		if path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") || clean == "." && key == "stagein" {
			return refuse("-W "+key+": "+name+" is not below the job's own directory: write a relative path", exitIllegalValue)
		}
		if !path.IsAbs(p) {
			p = path.Join(s.caller.Home, p) + strings.Repeat("/", len(p)-len(strings.TrimRight(p, "/")))
		}
		if strings.HasSuffix(p, "/") || s.caller.IsDir != nil && key == "stageout" && s.caller.IsDir(p) {
			p = path.Join(p, path.Base(clean))
		}
		all = append(all, staged{clean, path.Clean(p)})
	}
	if key == "stagein" {
		s.stageIn = all
		return nil
	}
	s.stageOut = all
	return s.checkStageOut()
}

// checkStageOut refuses outputs that do not keep their names: they come back below one directory.
func (s *submission) checkStageOut() error {
	for _, f := range s.stageOut {
		if _, ok := f.base(); !ok || path.Join(s.landing(), f.name) != f.path {
			return refuse("-W stageout: "+f.name+" would become "+f.path+": files keep their names, and all come back below one directory", exitIllegalValue)
		}
	}
	return nil
}

// base is the directory below which the file comes back under its own name.
func (f staged) base() (string, bool) {
	dir, ok := strings.CutSuffix(f.path, "/"+f.name)
	if dir == "" {
		dir = "/"
	}
	return dir, ok
}

// landing is the directory below which the outputs of a job come back that has a directory to itself.
func (s *submission) landing() string {
	if len(s.stageOut) == 0 {
		return s.caller.Dir
	}
	dir, _ := s.stageOut[0].base()
	return dir
}

// setStaging says in the ad which files travel.
func (s *submission) setStaging(ad *classad.Ad) {
	ad.SetString(roost.AttrTransfer, "auto")
	if !s.private {
		return
	}
	ad.SetString(roost.AttrTransfer, "always")
	var in, out []string
	for _, f := range s.stageIn {
		in = append(in, submit.Literal(f.path)+" => "+submit.Literal(f.name))
	}
	for _, f := range s.stageOut {
		out = append(out, submit.Literal(f.name))
	}
	if len(in) > 0 {
		ad.SetStrings(roost.AttrTransferIn, in)
	}
	if len(out) > 0 {
		ad.SetStrings(roost.AttrTransferOut, out)
	}
}
