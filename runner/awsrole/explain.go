package awsrole

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/aws/smithy-go"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// reasons are what codes of AWS's errors mean, whichever service says them.
var reasons = map[string]holdfast.Reason{
	// The identity.
	"InvalidIdentityToken":        holdfast.CauseCloudIdentityRefused,
	"ExpiredTokenException":       holdfast.CauseCloudIdentityRefused,
	"ExpiredToken":                holdfast.CauseCloudIdentityRefused,
	"IDPRejectedClaim":            holdfast.CauseCloudIdentityRefused,
	"IDPCommunicationError":       holdfast.CauseCloudIdentityRefused,
	"RegionDisabledException":     holdfast.CauseCloudIdentityRefused,
	"UnrecognizedClientException": holdfast.CauseCloudIdentityRefused,
	"InvalidClientTokenId":        holdfast.CauseCloudIdentityRefused,
	"InvalidSignatureException":   holdfast.CauseCloudIdentityRefused,
	"SignatureDoesNotMatch":       holdfast.CauseCloudIdentityRefused,
	// Its rights.
	"AccessDenied":          holdfast.CauseCloudForbidden,
	"AccessDeniedException": holdfast.CauseCloudForbidden,
}

// Explain says what an error of AWS means. Codes are what the caller knows better, by the
// code of an error. The result is a *protocol.LaunchError, or err itself if ctx of the call
// was canceled.
func Explain(what string, err error, codes map[string]holdfast.Reason) error {
	if err == nil {
		return nil
	}
	var known *protocol.LaunchError
	if errors.As(err, &known) { // the role could not be assumed
		return &protocol.LaunchError{Reason: known.Reason, Waits: known.Waits, Err: fmt.Errorf("%s: %w", what, known.Err)}
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", what, err)
	}
	refused := &protocol.LaunchError{Reason: holdfast.CauseRunnerUnreachable, Err: fmt.Errorf("%s: %w", what, err)}
	var said smithy.APIError
	if !errors.As(err, &said) {
		return refused
	}
	// The SDK's own words name the operation and the id of the request besides.
	refused.Err = fmt.Errorf("%s: %s: %s", what, said.ErrorCode(), said.ErrorMessage())
	all := maps.Clone(reasons)
	maps.Copy(all, codes)
	if reason, ok := all[said.ErrorCode()]; ok {
		refused.Reason = reason
	}
	return refused
}
