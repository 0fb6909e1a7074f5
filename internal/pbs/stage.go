package pbs

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// staged is what travels: its name below the job's directory, which may be a pattern on the way out, and its path on the submit side, which may be one on the
// way in. Of a pattern, and of what goes into a directory, the other end is that directory.
type staged struct {
	name, path string
	into       bool
}

// setStage reads "name@host:path[,…]". The files go to a directory that the job has to itself, or come from it, so names are relative; the host is this one.
func (s *submission) setStage(key, v string) error {
	var all []staged
	for _, item := range items(v) {
		name, remote, at := strings.Cut(item, "@")
		host, p, ok := strings.Cut(remote, ":")
		if !at || !ok || name == "" || host == "" || p == "" || strings.Contains(item, " => ") {
			return refuse("illegal -W value: "+key+": "+strconv.Quote(item)+" is not NAME@HOST:PATH", 2)
		}
		if own, _, _ := strings.Cut(s.host(), "."); !strings.EqualFold(host, s.host()) && !strings.EqualFold(host, own) && host != "localhost" {
			return refuse("-W "+key+": "+host+" is another machine: files travel between the job and the machine in whose queue it is, "+s.host(), exitIllegalValue)
		}
		clean := path.Clean(name)
		if path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") {
			return refuse("-W "+key+": "+name+" is not below the job's own directory: write a relative path", exitIllegalValue)
		}
		full := path.Clean(p)
		if !path.IsAbs(p) {
			full = path.Join(s.caller.Home, p)
		}
		if key == "stagein" {
			all = append(all, staged{clean, full, clean == "." || strings.HasSuffix(name, "/") || pattern(full)})
			continue
		}
		f := staged{clean, full, pattern(clean)}
		if !f.into && clean != "." && (strings.HasSuffix(p, "/") || s.caller.IsDir != nil && s.caller.IsDir(full)) {
			f.path = path.Join(full, path.Base(clean))
		}
		all = append(all, f)
	}
	if key == "stagein" {
		s.stageIn = all
	} else {
		s.stageOut = all
	}
	return nil
}

func pattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// landing is the directory below which the outputs of a job come back that has a directory to itself: the one that holds all of them.
func (s *submission) landing() string {
	if len(s.stageOut) == 0 {
		return s.caller.Dir
	}
	dir := ""
	for _, f := range s.stageOut {
		own := f.path
		if !f.into && f.name != "." {
			own = path.Dir(f.path)
		}
		for dir = cmp.Or(dir, own); dir != "/" && own != dir && !strings.HasPrefix(own, dir+"/"); {
			dir = path.Dir(dir)
		}
	}
	return dir
}

// entry is what the ad says of a file that comes back to below a directory.
func (f staged) entry(landing string) string {
	to := strings.TrimPrefix(strings.TrimPrefix(f.path, landing), "/")
	switch {
	case f.into && to == "" && !strings.Contains(f.name, "/"), to == f.name, f.name == "." && to == "":
		return submit.Literal(f.name)
	case f.into:
		to = cmp.Or(to, ".") + "/"
	}
	return submit.Literal(f.name) + " => " + submit.Literal(to)
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
		name := f.name
		if f.into {
			name += "/"
		}
		in = append(in, submit.Literal(f.path)+" => "+submit.Literal(name))
	}
	for _, f := range s.stageOut {
		out = append(out, f.entry(s.landing()))
	}
	if len(in) > 0 {
		ad.SetStrings(roost.AttrTransferIn, in)
	}
	if len(out) > 0 {
		ad.SetStrings(roost.AttrTransferOut, out)
	}
}
