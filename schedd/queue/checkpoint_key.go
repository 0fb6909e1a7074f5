package queue

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/roost-batch/roost"
)

// Sizes of a job's secret, in bytes. One of SecretSize has a key for each attempt; one of
// sharedSize, as earlier releases made it, is the key of all.
const (
	SecretSize = 64
	sharedSize = 32
)

// imageKey derives the key of an attempt's images from its job's secret. A node that has
// run an attempt can read no image of another, unless it was to go on from it, and can
// make none. A job without a secret has no keys.
func imageKey(secret []byte, index int, a roost.AttemptNumber) []byte {
	if len(secret) <= sharedSize {
		return secret
	}
	key, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("Roost images of task %d, attempt %d", index, a),
		sharedSize)
	if err != nil {
		panic(fmt.Sprintf("the key of an image: %v", err)) // it is too long for HKDF, which it never is
	}
	return key
}
