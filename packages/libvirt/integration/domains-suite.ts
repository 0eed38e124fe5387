import {
  ConnectListAllDomainsFlags,
  DomainCreateFlags,
  DomainMetadataType,
  DomainPausedReason,
  DomainRunningReason,
  DomainShutoffReason,
  DomainState,
  DomainStatsTypes,
  DomainXMLFlags,
  ErrorNumber,
} from '../src/index.ts';
import type { DomainEvent, LibvirtError } from '../src/index.ts';
import { describe, expect, test } from 'vitest';
import { domainXml, recordLifecycle, Recording, useDaemon } from './fixture.ts';
import { eventually } from './harness.ts';
import type { HarnessKind } from './harness.ts';

/** Domains: life, events in order, description, statistics, agent, monitor. */
export function testDomains(kind: HarnessKind): void {
  describe('domains', () => {
    const daemon = useDaemon(kind);

    test('defines, finds, lists and undefines, with events', async () => {
      const connection = await daemon.connect();
      const seen = await recordLifecycle(connection);
      const uuid = 'c4372a78-3344-44c2-9117-8deffe96471a';
      const domain = await connection.defineDomainXml(domainXml('a', { uuid }));
      expect(await seen.next(1)).toEqual(['a 0/0']);
      expect(domain.ref).toEqual({ name: 'a', uuid, id: -1 });
      expect((await connection.lookupDomainByName('a')).uuid).toBe(uuid);
      expect((await connection.lookupDomainByUuid(uuid.replaceAll('-', ''))).name).toBe('a');
      expect((await connection.listAllDomains()).map((one) => one.name)).toEqual(['a']);
      expect(await connection.listAllDomains(ConnectListAllDomainsFlags.ACTIVE)).toEqual([]);
      expect(await domain.isPersistent()).toBe(true);
      expect(await domain.getState()).toEqual({ state: DomainState.SHUTOFF, reason: DomainShutoffReason.UNKNOWN });
      await domain.undefine();
      expect(await seen.next(1)).toEqual(['a 1/0']);
      await expect(domain.getState()).rejects.toMatchObject({
        code: ErrorNumber.NO_DOMAIN,
        message: `Domain not found: no domain with matching uuid '${uuid}' (a)`,
      });
    });

    test('refuses a name that another uuid has', async () => {
      const connection = await daemon.connect();
      const first = await connection.defineDomainXml(domainXml('taken'));
      const error = await connection.defineDomainXml(domainXml('taken')).catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        code: ErrorNumber.OPERATION_FAILED,
        message: `operation failed: domain 'taken' already exists with uuid ${first.uuid}`,
      });
    });

    test('starts, pauses, resumes and destroys, with states, reasons and events in the order of the daemon', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('b'));
      const seen = await recordLifecycle(connection);
      await domain.create();
      expect(domain.id).toBeGreaterThan(0);
      expect(await seen.next(2)).toEqual(['b 4/0', 'b 2/0']);
      expect(await domain.getState()).toEqual({ state: DomainState.RUNNING, reason: DomainRunningReason.BOOTED });
      await expect(domain.create()).rejects.toMatchObject({
        code: ErrorNumber.OPERATION_INVALID,
        message: 'Requested operation is not valid: domain is already running',
      });
      await domain.suspend();
      expect(await domain.getState()).toEqual({ state: DomainState.PAUSED, reason: DomainPausedReason.USER });
      await domain.resume();
      expect(await domain.getState()).toEqual({ state: DomainState.RUNNING, reason: DomainRunningReason.UNPAUSED });
      expect(await seen.next(2)).toEqual(['b 3/0', 'b 4/0']);
      await domain.destroy();
      expect(domain.id).toBe(-1);
      expect(await seen.next(2)).toEqual(['b 6/2', 'b 5/1']);
      expect(await domain.getState()).toEqual({ state: DomainState.SHUTOFF, reason: DomainShutoffReason.DESTROYED });
      await expect(domain.destroy()).rejects.toMatchObject({
        code: ErrorNumber.OPERATION_INVALID,
        message: 'Requested operation is not valid: domain is not running',
      });
    });

    test('starts paused', async () => {
      const connection = await daemon.connect();
      const seen = await recordLifecycle(connection);
      const domain = await connection.defineDomainXml(domainXml('c'));
      await domain.create(DomainCreateFlags.START_PAUSED);
      expect(await seen.next(3)).toEqual(['c 0/0', 'c 2/0', 'c 3/0']);
      expect((await domain.getState()).state).toBe(DomainState.PAUSED);
    });

    test('runs transient domains, which are gone when they stop', async () => {
      const connection = await daemon.connect();
      const domain = await connection.createDomainXml(domainXml('t'));
      expect(await domain.isPersistent()).toBe(false);
      expect((await connection.lookupDomainById(domain.id)).name).toBe('t');
      await domain.destroy();
      await expect(connection.lookupDomainByName('t')).rejects.toMatchObject({ code: ErrorNumber.NO_DOMAIN });
    });

    test('sets autostart by the call of that name', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('auto'));
      expect(await connection.call('DOMAIN_GET_AUTOSTART', { dom: domain.ref })).toEqual({ autostart: 0 });
      await connection.call('DOMAIN_SET_AUTOSTART', { dom: domain.ref, autostart: 1 });
      expect(await connection.call('DOMAIN_GET_AUTOSTART', { dom: domain.ref })).toEqual({ autostart: 1 });
    });

    test('describes a running domain and its definition', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('d', { hasAgentChannel: true }));
      await domain.create(DomainCreateFlags.START_PAUSED);
      const live = await domain.getXmlDesc();
      expect(live).toContain(`id='${String(domain.id)}'`);
      expect(live).toContain(`<uuid>${domain.uuid}</uuid>`);
      expect(live).toContain("<alias name='serial0'/>");
      expect(live).toContain("<target type='virtio' name='org.qemu.guest_agent.0' state='disconnected'/>");
      const inactive = await domain.getXmlDesc(DomainXMLFlags.INACTIVE);
      expect(inactive).not.toContain("<alias name='serial0'/>");
      expect(inactive).toContain('<name>d</name>');
    });

    test('tells info, memory statistics, control state and messages', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('e'));
      await domain.create();
      expect(await domain.getInfo()).toMatchObject({ state: 1, maxMem: 32_768n, memory: 32_768n, nrVirtCpu: 1 });
      expect((await domain.memoryStats()).get(6)).toBe(32_768n);
      expect((await domain.getControlInfo()).state).toBe(0);
      expect(await domain.getMessages()).toEqual(expect.any(Array));
      expect(await domain.getVcpuPinInfo(1, 1)).toHaveLength(1);
      expect(await domain.getDiskErrors()).toEqual([]);
      expect(await domain.getJobStats()).toMatchObject({ type: 0, params: { list: [] } });
      await expect(domain.abortJob()).rejects.toMatchObject({ code: ErrorNumber.OPERATION_INVALID });
    });

    test('tells the statistics of all domains or of some, by group', async () => {
      const connection = await daemon.connect();
      const on = await connection.defineDomainXml(domainXml('on'));
      await connection.defineDomainXml(domainXml('off'));
      await on.create();
      const all = await connection.getAllDomainStats();
      expect(all.map((one) => one.domain.name).sort()).toEqual(['off', 'on']);
      const [one] = await connection.getAllDomainStats({
        domains: [on],
        stats: DomainStatsTypes.STATE | DomainStatsTypes.BALLOON,
      });
      expect(one?.params.number('state.state')).toBe(DomainState.RUNNING);
      expect(one?.params.bigint('balloon.maximum')).toBe(32_768n);
      expect(one?.params.get('vcpu.current')).toBeUndefined();
    });

    test('keeps metadata: description, title, element; and says when there is none', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('m'));
      const changes: DomainEvent<'metadataChange'>[] = [];
      await connection.onDomainEvent('metadataChange', (event) => changes.push(event), { domain });
      await expect(domain.getMetadata(DomainMetadataType.TITLE)).rejects.toMatchObject({
        code: ErrorNumber.NO_DOMAIN_METADATA,
        message: 'metadata not found: Requested metadata element is not present',
      });
      const uri = 'urn:example:m';
      await domain.setMetadata({ type: DomainMetadataType.TITLE, text: 'A <title>' });
      await domain.setMetadata({ type: DomainMetadataType.ELEMENT, text: '<k a="1">v</k>', key: 'kv', uri });
      expect(await domain.getMetadata(DomainMetadataType.TITLE)).toBe('A <title>');
      expect(await domain.getMetadata(DomainMetadataType.ELEMENT, uri)).toBe('<k a="1">v</k>');
      await domain.setMetadata({ type: DomainMetadataType.ELEMENT, text: null, key: 'kv', uri });
      await expect(domain.getMetadata(DomainMetadataType.ELEMENT, uri)).rejects.toMatchObject({ code: 80 });
      await eventually('three metadata events', () => changes.length === 3);
      expect(changes.map((event) => [event.domain.name, event.type, event.nsuri])).toEqual([
        ['m', 1, null],
        ['m', 2, uri],
        ['m', 2, uri],
      ]);
    });

    test('says why the agent does not answer', async () => {
      const connection = await daemon.connect();
      const states = new Recording<number[]>();
      await connection.onDomainEvent('agentLifecycle', (event) => states.add([event.state, event.reason]));
      const without = await connection.defineDomainXml(domainXml('n'));
      const silent = await connection.defineDomainXml(domainXml('s', { hasAgentChannel: true }));
      await without.create();
      await silent.create();
      expect(await states.next(1)).toEqual([[2, 1]]);
      await expect(without.agentCommand('{"execute":"guest-ping"}')).rejects.toMatchObject({
        code: ErrorNumber.ARGUMENT_UNSUPPORTED,
        message: 'argument unsupported: QEMU guest agent is not configured',
      });
      await expect(silent.getGuestInfo()).rejects.toMatchObject({
        code: ErrorNumber.AGENT_UNRESPONSIVE,
        message: 'Guest agent is not responding: QEMU guest agent is not connected',
      });
    });

    test('passes monitor commands and monitor events', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('q'));
      await domain.create();
      const events: string[] = [];
      await using _all = await connection.onMonitorEvent((event) => events.push(event.event), { domain });
      const regex = await connection.onMonitorEvent((event) => events.push(`regex ${event.event}`), {
        event: '^sto',
        isRegex: true,
        ignoreCase: true,
      });
      const status: unknown = JSON.parse(await domain.monitorCommand('{"execute":"query-status"}'));
      expect(status).toMatchObject({ return: { status: 'running', running: true } });
      const unknown: unknown = JSON.parse(await domain.monitorCommand('{"execute":"no-such-thing"}'));
      expect(unknown).toMatchObject({ error: { class: 'CommandNotFound' } });
      await domain.suspend();
      await eventually('both STOP events', () => events.length === 2);
      expect(events.toSorted()).toEqual(['STOP', 'regex STOP']);
      await regex.close();
      await domain.resume();
      await domain.suspend();
      await eventually('RESUME and STOP', () => events.length === 4);
      expect(events.slice(2)).toEqual(['RESUME', 'STOP']);
    });

    test('delivers events of one domain only, until the subscription is closed', async () => {
      const connection = await daemon.connect();
      const a = await connection.defineDomainXml(domainXml('one'));
      const b = await connection.defineDomainXml(domainXml('two'));
      const seen = new Recording<string>();
      const subscription = await connection.onDomainEvent('lifecycle', (event) => seen.add(event.domain.name), {
        domain: a,
      });
      const all = await recordLifecycle(connection);
      await b.create(DomainCreateFlags.START_PAUSED);
      await a.create(DomainCreateFlags.START_PAUSED);
      await all.next(4);
      expect(await seen.next(2)).toEqual(['one', 'one']);
      await subscription.close();
      await subscription.close();
      await a.destroy();
      await all.next(2);
      expect(seen.all).toEqual([]);
    });

    test('gives the error of an event id or callback id that the daemon does not know', async () => {
      const connection = await daemon.connect();
      const register = connection.call('CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY', { eventID: 99, dom: null });
      await expect(register).rejects.toMatchObject({
        code: 1,
        domain: 7,
        message: 'internal error: unsupported event ID 99',
      });
      const deregister = connection.call('CONNECT_DOMAIN_EVENT_CALLBACK_DEREGISTER_ANY', { callbackID: 999_999 });
      await expect(deregister).rejects.toMatchObject({
        message: 'internal error: domain event callback 999999 not registered',
      });
    });

    test('reports a QEMU that was killed as crashed', async () => {
      const connection = await daemon.connect();
      const seen = await recordLifecycle(connection);
      const domain = await connection.defineDomainXml(domainXml('k'));
      await domain.create();
      await seen.next(3);
      daemon.harness.killQemu('k');
      expect(await seen.next(1)).toEqual(['k 5/5']);
      expect(await domain.getState()).toEqual({ state: DomainState.SHUTOFF, reason: DomainShutoffReason.CRASHED });
      const error = await domain.suspend().catch((caught: unknown) => caught);
      expect((error as LibvirtError).code).toBe(ErrorNumber.OPERATION_INVALID);
    });
  });
}
