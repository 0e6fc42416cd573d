/** Runs once before all test files; what it starts is shared by them through the environment. */
export default async function globalSetup(): Promise<() => Promise<void>> {
  return async () => {}
}
