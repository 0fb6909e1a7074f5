package jobad

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ports reads the ports that each task needs.
func (r *adReader) ports() (list []roost.PortRequest) {
	if !r.has(roost.AttrPorts) {
		return nil
	}
	values, ok := r.ad.Eval(roost.AttrPorts, nil).Elements(nil)
	if !ok || len(values) > roost.MaxPorts {
		r.fail(roost.AttrPorts, fmt.Sprintf("a list of at most %d ads is wanted", roost.MaxPorts))
		return nil
	}
	for i, v := range values {
		ad, ok := v.Ad()
		if !ok {
			r.fail(roost.AttrPorts, fmt.Sprintf("place %d is no ad", i))
			return nil
		}
		one := adReader{ad: ad}
		p := roost.PortRequest{Name: one.text(roost.AttrName, ""), Host: one.text(roost.AttrPortHost, ""),
			Static: uint16(one.number(roost.AttrPortStatic, 0, 0, 1<<16-1)),
			Listen: one.boolean(roost.AttrPortListen, false)}
		if one.err != nil {
			r.fail(roost.AttrPorts, fmt.Sprintf("place %d: %v", i, one.err))
		}
		list = append(list, p)
	}
	if err := roost.CheckPorts(list); err != nil {
		r.fail(roost.AttrPorts, err.Error())
	}
	return list
}

// hasSockets reports whether the machine listens on a port for the tasks.
func hasSockets(ports []roost.PortRequest) bool {
	return slices.ContainsFunc(ports, func(p roost.PortRequest) bool { return p.Listen })
}

// portKey tells requests for ports apart.
func portKey(ports []roost.PortRequest) string {
	if len(ports) == 0 {
		return ""
	}
	return fmt.Sprintf(" ports %+v", ports)
}

// describePorts writes into a request's ad which numbers its ports must have. Only the
// job that has had one of them on a machine may have it there again for a while. Where a
// capability is needed, the ad names the submit node whose user must have it, if that is
// not the job's own host: the queue of the cell has jobs of all submit nodes.
func describePorts(ad *classad.Ad, ports []roost.PortRequest, job roost.JobID, submitHost string) {
	var numbers []classad.Value
	for _, p := range ports {
		if p.Static != 0 {
			numbers = append(numbers, classad.IntValue(int64(p.Static)))
		}
	}
	if needed := roost.PortCapabilities(ports); len(needed) > 0 {
		ad.SetStrings(roost.AttrPortCapabilities, needed)
		if submitHost != "" && submitHost != job.Host {
			ad.SetString(roost.AttrSubmitHost, submitHost)
		}
	}
	if len(numbers) > 0 {
		ad.SetValue(roost.AttrStaticPorts, classad.ListValue(numbers...))
		ad.SetString(roost.AttrJobID, job.String())
	}
}
