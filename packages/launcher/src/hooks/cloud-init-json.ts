import { parseJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { CloudInitHookData } from '@virtwire/shared-proto/hooks';
import { seedMetadata } from '../disks/cloud-init-metadata.ts';
import type { CloudInitData, CloudInitKind } from '../disks/cloud-init-source.ts';
import { LauncherError } from '../errors.ts';

type Fields = Readonly<Record<string, unknown>>;

/** JSON holds text only: bytes that are none do not survive it. */
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/**
 * Seed data in the form in which sidecars take them: Go's `CloudInitData`, and the object of the API that the first
 * sidecars knew, with the data of secrets filled in.
 *
 * @source KubeVirt v1.9.0 pkg/hooks/manager.go, pkg/cloud-init/cloud-init.go
 */
export function renderHookData(vmi: Vmi, data: CloudInitData): CloudInitHookData {
  const { kind, volume } = data;
  const [userData, networkData] = [textOf(data.userData), textOf(data.networkData)];
  const metadata = seedMetadata(vmi, data);
  const legacy = {
    ...(userData === '' ? {} : { userData }),
    ...(networkData === '' ? {} : { networkData }),
  };
  const whole = {
    DataSource: kind,
    NoCloudMetaData: kind === 'noCloud' ? metadata : null,
    ConfigDriveMetaData: kind === 'configDrive' ? metadata : null,
    UserData: userData,
    NetworkData: networkData,
    DevicesData: null,
    VolumeName: volume,
  };
  return {
    cloudInitNoCloudSource: Buffer.from(JSON.stringify(legacy)),
    cloudInitData: Buffer.from(JSON.stringify(whole)),
  };
}

function parse(bytes: Uint8Array, what: string): Fields {
  const text = textOf(bytes);
  // Sidecars that know only one of the two objects send nothing for the other.
  if (text === '') return {};
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (caught) {
    throw LauncherError.from(caught, 'HookFailed', '');
  }
  if (value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Fields;
  throw new LauncherError('HookFailed', `json: cannot unmarshal into Go value of type ${what}`);
}

/** A field whose name is written in any case, as Go reads it. */
function field(fields: Fields, name: string): unknown {
  if (name in fields) return fields[name];
  const key = Object.keys(fields).find((other) => other.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : fields[key];
}

function textField(fields: Fields, name: string, what: string): string {
  const value = field(fields, name) ?? '';
  if (typeof value === 'string') return value;
  throw new LauncherError('HookFailed', `json: cannot unmarshal into Go struct field ${what}.${name} of type string`);
}

function metadataField(fields: Fields, name: string): Fields | undefined {
  const value = field(fields, name) ?? undefined;
  if (value === undefined || (typeof value === 'object' && !Array.isArray(value))) return value as Fields | undefined;
  throw new LauncherError('HookFailed', `json: cannot unmarshal into Go struct field CloudInitData.${name}`);
}

function kindOf(text: string, sent: CloudInitKind): CloudInitKind {
  if (text === '') return sent;
  if (text === 'noCloud' || text === 'configDrive') return text;
  throw new LauncherError('HookFailed', `Invalid cloud-init data source: '${text}'`);
}

/** What came back as it was sent is what it was, also where it is no text. */
function dataOf(
  sent: CloudInitData,
  userData: string,
  networkData: string,
): Pick<CloudInitData, 'userData' | 'networkData'> {
  const answered = (text: string, bytes: Buffer): Buffer => (text === textOf(bytes) ? bytes : Buffer.from(text));
  return { userData: answered(userData, sent.userData), networkData: answered(networkData, sent.networkData) };
}

/**
 * What a sidecar made of seed data. Its whole answer counts when it has user data and metadata; otherwise user and network
 * data of the old object do, and the metadata are the least that cloud-init needs.
 *
 * @throws {LauncherError} `HookFailed` when the answer is no such JSON.
 */
export function parseHookData(sent: CloudInitData, answer: CloudInitHookData): CloudInitData {
  const whole = parse(answer.cloudInitData, 'cloudinit.CloudInitData');
  const userData = textField(whole, 'UserData', 'CloudInitData');
  const noCloud = metadataField(whole, 'NoCloudMetaData');
  const configDrive = metadataField(whole, 'ConfigDriveMetaData');
  if (userData !== '' && (noCloud !== undefined || configDrive !== undefined)) {
    const kind = kindOf(textField(whole, 'DataSource', 'CloudInitData'), sent.kind);
    const networkData = textField(whole, 'NetworkData', 'CloudInitData');
    const metadata = (kind === 'noCloud' ? noCloud : configDrive) ?? 'minimal';
    return { ...sent, kind, ...dataOf(sent, userData, networkData), metadata };
  }
  const legacy = parse(answer.cloudInitNoCloudSource, 'v1.CloudInitNoCloudSource');
  const oldUserData = textField(legacy, 'userData', 'CloudInitNoCloudSource');
  const oldNetworkData = textField(legacy, 'networkData', 'CloudInitNoCloudSource');
  if (oldUserData === '' && oldNetworkData === '') {
    throw new LauncherError('HookFailed', 'UserData or NetworkData is required for cloud-init data source');
  }
  return { ...sent, ...dataOf(sent, oldUserData, oldNetworkData), metadata: 'minimal' };
}
