package jobad

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// HealthCheck is what an ad says of one health check.
type HealthCheck struct {
	Name        string
	Kind        string // "http", "tcp" or "exec"
	Live        bool   // a task that fails is started again
	Port        string
	Path        string
	Method      string
	Headers     []string // "Name: value"
	Command     []string
	Every       time.Duration
	Timeout     time.Duration
	StartWithin time.Duration
	Fails       int
	Passes      int
}

// StopOrder is what an ad says of how a task is stopped before SIGTERM.
type StopOrder struct {
	Drain time.Duration
	URL   string // path of a POST; empty: none
	Port  string // its name
}

// healthChecks reads the health checks of a service.
func (r *adReader) healthChecks() (list []HealthCheck) {
	if !r.has(roost.AttrChecks) {
		return nil
	}
	elements, ok := r.ad.Eval(roost.AttrChecks, nil).Elements(nil)
	if !ok || len(elements) > roost.MaxChecks {
		r.fail(roost.AttrChecks, fmt.Sprintf("a list of at most %d ads is wanted", roost.MaxChecks))
		return nil
	}
	ports, names := r.portNames(), map[string]bool{}
	for _, e := range elements {
		ad, ok := e.Ad()
		if !ok {
			r.fail(roost.AttrChecks, "a list of ads is wanted")
			return nil
		}
		in := &adReader{ad: ad}
		c := in.healthCheck(ports)
		if in.err == nil && names[c.Name] {
			in.fail(roost.AttrName, fmt.Sprintf("two checks are called %q", c.Name))
		}
		if in.err != nil {
			r.fail(roost.AttrChecks, in.err.Error())
			return nil
		}
		names[c.Name] = true
		list = append(list, c)
	}
	return list
}

// healthCheck reads the ad of one check.
func (r *adReader) healthCheck(ports map[string]bool) HealthCheck {
	c := HealthCheck{Name: r.text(roost.AttrName, ""), Kind: r.text(roost.AttrCheckKind, ""),
		Port: r.text(roost.AttrCheckPort, ""), Path: r.text(roost.AttrCheckPath, ""),
		Method: r.text(roost.AttrCheckMethod, "GET")}
	if err := roost.CheckCheckName(c.Name); err != nil {
		r.fail(roost.AttrName, err.Error())
	}
	switch purpose := r.text(roost.AttrCheckFor, roost.CheckForReady); purpose {
	case roost.CheckForReady:
	case roost.CheckForLive:
		c.Live = true
	default:
		r.fail(roost.AttrCheckFor, fmt.Sprintf("%q is neither %s nor %s", purpose, roost.CheckForReady,
			roost.CheckForLive))
	}
	c.Every = r.duration(roost.AttrCheckEvery, roost.DefaultCheckEvery, roost.MinCheckEvery, roost.MaxCheckEvery)
	timeout := roost.DefaultCheckTimeout
	if c.Kind != "exec" { // to begin a program may take seconds where the machine is busy
		timeout = min(timeout, c.Every)
	}
	c.Timeout = r.duration(roost.AttrCheckTimeout, timeout, roost.MinCheckTimeout, c.Every)
	c.StartWithin = r.duration(roost.AttrCheckStartWithin, roost.DefaultCheckStart, 0, roost.MaxCheckStart)
	c.Fails = int(r.number(roost.AttrCheckFails, roost.DefaultCheckFails, 1, roost.MaxCheckCount))
	c.Passes = int(r.number(roost.AttrCheckPasses, roost.DefaultCheckPasses, 1, roost.MaxCheckCount))
	r.checkRequest(&c, ports)
	return c
}

// checkRequest reads what a check asks.
func (r *adReader) checkRequest(c *HealthCheck, ports map[string]bool) {
	switch c.Kind {
	case "exec":
		if c.Command, _ = r.ad.Strings(roost.AttrCheckCommand); len(c.Command) == 0 || c.Command[0] == "" {
			r.fail(roost.AttrCheckCommand, "a program and its arguments are wanted")
		}
		return
	case "http":
		if err := roost.CheckRequestPath(c.Path); err != nil {
			r.fail(roost.AttrCheckPath, err.Error())
		}
		if c.Method != "GET" && c.Method != "HEAD" {
			r.fail(roost.AttrCheckMethod, fmt.Sprintf("%q is neither GET nor HEAD", c.Method))
		}
		c.Headers, _ = r.ad.Strings(roost.AttrCheckHeaders)
		for _, h := range c.Headers {
			name, value, _ := strings.Cut(h, ":")
			if err := roost.CheckHeader(name, strings.TrimSpace(value)); err != nil {
				r.fail(roost.AttrCheckHeaders, err.Error())
			}
		}
	case "tcp":
	default:
		r.fail(roost.AttrCheckKind, fmt.Sprintf("%q is none of http, tcp, exec", c.Kind))
	}
	if !ports[c.Port] {
		r.fail(roost.AttrCheckPort, fmt.Sprintf("the job has no port %q", c.Port))
	}
}

// portNames are the names of the job's ports.
func (r *adReader) portNames() map[string]bool {
	names := map[string]bool{}
	elements, _ := r.ad.Eval(roost.AttrPorts, nil).Elements(nil)
	for _, e := range elements {
		if ad, ok := e.Ad(); ok {
			if name, ok := ad.Str(roost.AttrName); ok {
				names[name] = true
			}
		}
	}
	return names
}

// stopOrder reads how a task is stopped, from the ad of the service. Tasks with ports are
// drained: clients may know them.
func (r *adReader) stopOrder(service *classad.Ad) StopOrder {
	in, ports := adReader{ad: service}, r.portNames()
	usual := time.Duration(0)
	if len(ports) > 0 {
		usual = roost.DefaultDrain
	}
	o := StopOrder{Drain: in.duration(roost.AttrDrain, usual, 0, roost.MaxDrain), URL: in.text(roost.AttrStopURL, ""),
		Port: in.text(roost.AttrStopPort, "")}
	if o.URL != "" {
		if err := roost.CheckRequestPath(o.URL); err != nil {
			in.fail(roost.AttrStopURL, err.Error())
		}
		if !ports[o.Port] {
			in.fail(roost.AttrStopPort, fmt.Sprintf("the job has no port %q", o.Port))
		}
	}
	if in.err != nil {
		r.fail(roost.AttrService, in.err.Error())
	}
	return o
}
