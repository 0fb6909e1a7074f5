package api

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

// privateAttributes are the attributes of a job's ad that only its owner should see.
// People put passwords into environments and command lines.
var privateAttributes = []string{roost.AttrEnvironment, roost.AttrScript, roost.AttrArguments,
	roost.AttrSubmitArguments}

// mayReadAd reports whether a user is shown all of a job's ad: its owner, root, and the
// schedd's own user.
func mayReadAd(who queue.CallerIdentity, st *queue.JobStatus) bool {
	return who.Admin || who.Owns(st.Owner, st.UID)
}

// publicAd is what everybody may see of a job's ad. One that cannot be read has nothing
// to show.
func publicAd(text string) string {
	ad, err := classad.Parse(text)
	if err != nil {
		return ""
	}
	for _, name := range privateAttributes {
		ad.Delete(name)
	}
	return ad.String()
}
