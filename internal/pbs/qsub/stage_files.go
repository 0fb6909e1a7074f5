package qsub

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// stageFile is a file to stage. name is below the job's directory, and path is on the
// submit side. The source of the copy may be a pattern. For a pattern, or if destination
// is set, the other end is a directory.
type stageFile struct {
	name, path  string
	destination bool
}

// setStage parses "name@host:path[,…]". Names are relative to the job's own directory;
// the host must be this one.
func (s *JobSubmission) setStage(key, v string) error {
	var all []stageFile
	for _, item := range listItems(v) {
		name, remote, at := strings.Cut(item, "@")
		host, p, ok := strings.Cut(remote, ":")
		if !at || !ok || name == "" || host == "" || p == "" || strings.Contains(item, " => ") {
			return refusalf("illegal -W value: "+key+": "+strconv.Quote(item)+" is not NAME@HOST:PATH", 2)
		}
		if own, _, _ := strings.Cut(s.paths().serverHost(), "."); !strings.EqualFold(host, s.paths().serverHost()) &&
			!strings.EqualFold(host, own) && host != "localhost" {
			return refusalf("-W "+key+": "+host+" is another machine: files travel between the job and the machine "+
				"in whose queue it is, "+s.paths().serverHost(), exitIllegalValue)
		}
		clean := path.Clean(name)
		if path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") {
			return refusalf("-W "+key+": "+name+" is not below the job's own directory: write a relative path",
				exitIllegalValue)
		}
		full := path.Clean(p)
		if !path.IsAbs(p) {
			full = path.Join(s.Caller.Home, p)
		}
		if key == "stagein" {
			all = append(all, stageFile{clean, full, clean == "." || strings.HasSuffix(name, "/") || isPattern(full)})
			continue
		}
		f := stageFile{clean, full, isPattern(clean)}
		if !f.destination && clean != "." &&
			(strings.HasSuffix(p, "/") || s.Caller.IsDir != nil && s.Caller.IsDir(full)) {
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

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// outputDirectory returns the common directory of all outputs of a job with a directory
// of its own.
func (s *JobSubmission) outputDirectory() string {
	if len(s.stageOut) == 0 {
		return s.Caller.Dir
	}
	dir := ""
	for _, f := range s.stageOut {
		own := f.path
		if !f.destination && f.name != "." {
			own = path.Dir(f.path)
		}
		for dir = cmp.Or(dir, own); dir != "/" && own != dir && !strings.HasPrefix(own, dir+"/"); {
			dir = path.Dir(dir)
		}
	}
	return dir
}

// adEntry returns the entry in the ad for a file that is copied back below a directory.
func (f stageFile) adEntry(landing string) string {
	to := strings.TrimPrefix(strings.TrimPrefix(f.path, landing), "/")
	switch {
	case f.destination && to == "" && !strings.Contains(f.name, "/"), to == f.name, f.name == "." && to == "":
		return jobspec.EscapeLiteral(f.name)
	case f.destination:
		to = cmp.Or(to, ".") + "/"
	}
	return jobspec.EscapeLiteral(f.name) + " => " + jobspec.EscapeLiteral(to)
}

// setStaging writes into the ad which files are staged.
func (s *JobSubmission) setStaging(ad *classad.Ad) {
	ad.SetString(roost.AttrTransfer, "auto")
	if !s.ownDirectory {
		return
	}
	ad.SetString(roost.AttrTransfer, "always")
	var in, out []string
	for _, f := range s.stageIn {
		name := f.name
		if f.destination {
			name += "/"
		}
		in = append(in, jobspec.EscapeLiteral(f.path)+" => "+jobspec.EscapeLiteral(name))
	}
	for _, f := range s.stageOut {
		out = append(out, f.adEntry(s.outputDirectory()))
	}
	if len(in) > 0 {
		ad.SetStrings(roost.AttrTransferIn, in)
	}
	if len(out) > 0 {
		ad.SetStrings(roost.AttrTransferOut, out)
	}
}
