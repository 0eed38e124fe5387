import { omitEmpty, text, uint64, uint } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

const some = omitEmpty(text);

const platformFields = { pdh: some, certChain: some };
const measurementFields = {
  kind: some,
  apiVersion: some,
  measurement: some,
  apiMajor: omitEmpty(uint),
  apiMinor: omitEmpty(uint),
  buildID: omitEmpty(uint),
  policy: omitEmpty(uint64),
  loaderSHA: some,
};
const secretFields = { header: some, secret: some };

/** The platform's keys, base64. */
export type SevPlatformInfo = ObjectOf<typeof platformFields>;
/** What was measured at launch. */
export type SevMeasurementInfo = ObjectOf<typeof measurementFields>;
/** A secret for the guest, base64. */
export type SevSecretOptions = ObjectOf<typeof secretFields>;

/** Answer of GetSEVInfo. */
export const sevPlatformInfo = payload(struct('SEVPlatformInfo', platformFields));
/** Answer of GetLaunchMeasurement. */
export const sevMeasurementInfo = payload(struct('SEVMeasurementInfo', measurementFields));
/** `options` of InjectLaunchSecret. */
export const sevSecretOptions = payload(struct('SEVSecretOptions', secretFields));
