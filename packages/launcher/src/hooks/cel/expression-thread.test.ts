import { describe, expect, test } from 'vitest';
import { createExpressionThread } from './expression-thread.ts';

const VMI = JSON.stringify({ metadata: { name: 'vm' } });
const XML = '<domain type="kvm"><name>n</name></domain>';
const numbers = `[${Array.from({ length: 400 }, (_, index) => index).join()}]`;
const endless = `${numbers}.all(a, ${numbers}.all(b, ${numbers}.all(c, a + b + c >= 0)))`;
const long = `["ab"]${'.map(x, x + x)'.repeat(60)}.size() > 0`;
const growing = `[[1, 2]]${'.map(x, x + x)'.repeat(60)}.size() > 0`;

describe('expressions in a thread of their own', () => {
  test('have a result, one after the other, or a reason', async () => {
    await using thread = createExpressionThread(VMI);
    expect(await thread.condition('vmi.Name == "vm"', XML)).toBe(true);
    expect(await thread.condition('domainSpec.Type == "qemu"', XML)).toBe(false);
    expect(await thread.mutation('Domain{Title: vmi.Name}', XML)).toContain('<title>vm</title>');
    await expect(thread.condition('vmi.Name', XML)).rejects.toThrow('condition must return bool, got string');
    await expect(thread.mutation('Domain{}', '<other/>')).rejects.toThrow('expected element type <domain>');
    await expect(thread.mutation('Domain{}', '<domain>')).rejects.toThrow('unclosed tag');
  });

  test('a hostile one costs too much, and leaves the launcher its time meanwhile', { timeout: 60_000 }, async () => {
    await using thread = createExpressionThread(VMI, 60_000);
    let turns = 0;
    const turning = setInterval(() => turns++, 1);
    await expect(thread.condition(long, XML)).rejects.toMatchObject({
      code: 'HookFailed',
      message: 'evaluating expression: operation cancelled: actual cost limit exceeded',
    });
    clearInterval(turning);
    expect(turns).toBeGreaterThan(2);
    expect(await thread.condition('true', XML)).toBe(true);
  });

  test('one that takes too long is ended, and the next one has a new thread', { timeout: 60_000 }, async () => {
    await using thread = createExpressionThread(VMI, 50);
    await expect(thread.condition(endless, XML)).rejects.toThrow('evaluating expression: not done after 0.05 s');
    await using patient = createExpressionThread(VMI);
    expect(await patient.condition('true', XML)).toBe(true);
  });

  test('one that wants too much memory ends its thread only', { timeout: 60_000 }, async () => {
    await using thread = createExpressionThread(VMI);
    await expect(thread.condition(growing, XML)).rejects.toThrow(/^evaluating expression: .*memory/);
    expect(await thread.condition('true', XML)).toBe(true);
  });

  test('none leaves no thread behind', async () => {
    const thread = createExpressionThread(VMI);
    await thread[Symbol.asyncDispose]();
    await thread[Symbol.asyncDispose]();
  });
});
